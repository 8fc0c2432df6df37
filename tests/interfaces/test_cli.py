"""The command line: each command is the public function behind it; bad input is one line and exit code 2."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import zil
from zil.interfaces import cli

TARGET = ["--zero-prob", "0.05", "--epsilon", "1", "--delta", "0.1", "--unit", "attribute", "--limit"]
BOUNDS = ["--bounds", "age=18:90", "--bounds", "income=0:1e5"]
CALIBRATE = ["calibrate", *BOUNDS, *TARGET]


def mechanism():
    bounds = {"age": (18, 90), "income": (0, 1e5)}
    return zil.calibrate(bounds, zero_prob=0.05, epsilon=1, delta=0.1, unit="attribute", sharp=False)


@pytest.fixture
def run(capsys):
    def call(*arguments):
        code = cli.main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def good(answer):
    code, out, err = answer
    assert (code, err) == (0, "")
    return out


def bad(answer, *words):
    """Exit code 2, nothing on standard output, one line that holds every word."""
    code, out, err = answer
    assert code == 2
    assert out == ""
    assert err.startswith("zil: ")
    assert err.count("\n") == 1
    for word in words:
        assert word in err


def test_calibrate_prints_the_label(run):
    assert good(run(*CALIBRATE, "--n-rows", 1000)).strip() == mechanism().report(1000).strip()


def test_calibrate_json_rebuilds_the_mechanism(run, tmp_path):
    text = good(run(*CALIBRATE, "--json"))
    facts = json.loads(text)
    assert facts["scale"] == dict(zip(["age", "income"], mechanism().scale.tolist(), strict=True))
    assert facts["shift"]["attribute"] == mechanism().shift("attribute")
    path = tmp_path / "mechanism.json"
    path.write_text(text)
    again = cli._read_mechanism(path)
    assert again == mechanism()
    assert again.report() == mechanism().report()
    assert "Calibrated at attribute level" in again.report()
    path.write_text(json.dumps(facts | {"target": facts["target"] | {"epsilon": 0.1}}))
    with pytest.raises(cli.BadInputError, match="target that its scales do not meet"):
        cli._read_mechanism(path)


def test_options_without_effect_are_refused(run, tmp_path):
    path = tmp_path / "mechanism.json"
    path.write_text(good(run(*CALIBRATE, "--json")))
    for extra in (["--resolution", "age=1"], ["--limit"], ["--scaling", "common"]):
        bad(run("audit", "--mechanism", path, "--unit", "record", *extra), "no effect", extra[0])
    given = ["calibrate", *BOUNDS, "--zero-prob", 0.05, "--scale", "age=100", "--scale", "income=100"]
    good(run(*given))
    for extra in (["--limit"], ["--scaling", "common"]):
        bad(run(*given, *extra), "no effect", extra[0])


def test_calibrate_with_given_scales(run):
    facts = json.loads(
        good(
            run(
                "calibrate",
                "--bounds",
                "a=0:1",
                "--zero-prob",
                0.1,
                "--scale",
                "a=2",
                "--resolution",
                "a=0.125",
                "--json",
            )
        )
    )
    assert facts["scale"] == {"a": 2.0}
    assert facts["tick"] == {"a": 0.125}
    assert facts["resolution"] == {"a": 0.125}


def test_column_names_may_hold_signs(run):
    facts = json.loads(good(run("calibrate", "--bounds", "a=b:c=0:1", *TARGET, "--json")))
    assert facts["bounds"] == {"a=b:c": [0.0, 1.0]}


def test_report(run, tmp_path):
    x = np.random.default_rng(0).uniform(18, 90, size=200)
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"age": x, "income": x * 1000, "name": ["x"] * 200})
    for suffix in ("csv", "parquet"):
        path = tmp_path / f"out.{suffix}"
        mechanism().release(table).save(path)
        released = zil.load(path)
        assert good(run("report", path)).strip() == released.report().strip()
        assert json.loads(good(run("report", path, "--json")))["n_rows"] == 200
    mechanism().simulate(table, rng=1).save(path)
    assert "NOT PRIVATE" in good(run("report", path))


def test_report_as_a_page(run, tmp_path):
    path = tmp_path / "out.csv"
    ages = np.random.default_rng(0).uniform(18, 90, size=(50, 2))
    mechanism().release(pd.DataFrame(ages, columns=["age", "income"])).save(path)
    released = zil.load(path)
    for form in ("text", "html"):
        page = good(run("report", path, "--format", form, "--rows-per-person", 2))
        assert page == released.report(format=form, rows_per_person=2)
    bad(run("report", path, "--format", "pdf"), "format must be one of")


def test_risk(run):
    found = json.loads(good(run("risk", *BOUNDS, *TARGET, "--n-rows", 1000, "--rows-per-person", 2, "--json")))
    assert found == mechanism().risk(1000, rows_per_person=2).to_dict()
    assert good(run("risk", *BOUNDS, *TARGET)).startswith("VERDICT: ")
    bad(run("risk", *BOUNDS, *TARGET, "--n-rows", -1), "--n-rows must")


def test_check(run, raw, tmp_path):
    file = tmp_path / "m.json"
    file.write_text(good(run(*CALIBRATE, "--json")))
    assert good(run("check", raw, "--mechanism", file)).startswith("NOT FOR PUBLICATION")
    found = json.loads(good(run("check", raw, "--mechanism", file, "--keys", "town", "--person", "id", "--json")))
    assert found["head"] == "NOT FOR PUBLICATION"
    assert found["found"]["keys"]["columns"] == ["town"]
    assert found["found"]["persons"]["most_rows"] == 1
    good(run("release", raw, tmp_path / "out.csv", "--mechanism", file))
    copy = json.loads(good(run("check", raw, tmp_path / "out.csv", "--mechanism", file, "--json")))
    assert copy["found"]["simulated_copy"] is False
    assert json.loads(good(run("check", raw, *BOUNDS, "--json")))["found"]["age"]["missing"] == 0
    bad(run("check", raw), "give --mechanism")
    bad(run("check", tmp_path / "none.csv", *BOUNDS), "no such file")
    (tmp_path / "torn.csv").write_text("a,b\n1\n")
    bad(run("check", tmp_path / "torn.csv", *BOUNDS), "not a CSV file that can be read")


def test_plan(run, tmp_path):
    options = ("--loss", "logistic", "--epsilon", 3, "--delta", 0.2, "--unit", "record")
    said = good(run("plan", *BOUNDS, *options, "--n-rows", 20000, "--plot", tmp_path / "p.png"))
    assert "No point is the best one" in said
    assert (tmp_path / "p.png").stat().st_size > 1000
    rng = np.random.default_rng(0)
    age, income = rng.uniform(18, 90, 300), rng.uniform(0, 1e5, 300)
    lines = [f"{a},{i},{a / 30 + i / 5e4 + rng.normal()}" for a, i in zip(age, income, strict=True)]
    (tmp_path / "pilot.csv").write_text("\n".join(["age,income,cost", *lines]) + "\n")
    more = ("--pilot", tmp_path / "pilot.csv", "--y", "cost", "--x", "age,income", "--target-se", 0.5, "--json")
    found = json.loads(good(run("plan", *BOUNDS, "--loss", "squared", *options[2:], *more)))
    assert list(found["estimate"]) == ["Intercept", "age", "income"]
    assert found["n"] is None
    bad(run("plan", *BOUNDS, *options), "give n")
    bad(run("plan", *options), "--bounds")


@pytest.fixture
def raw(tmp_path):
    rng = np.random.default_rng()
    lines = ["id,age,income,town"]
    lines += [f"{i},{rng.uniform(18, 90):.1f},{rng.uniform(0, 1e5):.0f},t{i % 3}" for i in range(500)]
    path = tmp_path / "raw.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_release(run, raw, tmp_path):
    """A mechanism file and the options behind it promise the same; the rest of the row passes through."""
    file = tmp_path / "m.json"
    file.write_text(good(run(*CALIBRATE, "--json")))
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    first = json.loads(good(run("release", raw, one, "--mechanism", file, "--json")))
    bad(run("release", raw, two, *BOUNDS, *TARGET, "--release-id", "two", "--json"), "released before")
    second = json.loads(good(run("release", raw, two, *BOUNDS, *TARGET, "--ledger", tmp_path / "other", "--json")))
    for metadata in (first, second):
        assert metadata["private"] is True
        assert metadata["n_rows"] == 500
    assert first["columns"] == second["columns"]
    released = zil.load(one)
    assert released.columns == ["age", "income"]
    assert one.read_text() != two.read_text()
    kept = [line.split(",")[::3] for line in raw.read_text().splitlines()]
    assert [line.split(",")[::3] for line in one.read_text().splitlines()] == kept
    before = one.read_bytes()
    assert "published as they are" in good(run("release", raw, one, "--mechanism", file))  # again: the same file
    assert one.read_bytes() == before


def test_release_of_some_columns(run, raw, tmp_path):
    out = tmp_path / "out.csv"
    good(run("release", raw, out, *BOUNDS, *TARGET, "--columns", "age, income", "--row-id", "id", "--json"))
    assert out.read_text().splitlines()[0] == "age,income"


def test_release_of_a_file_without_names_into_parquet(run, raw, tmp_path):
    bare, out = tmp_path / "bare.csv", tmp_path / "out.parquet"
    bare.write_text("\n".join(raw.read_text().splitlines()[1:]) + "\n")
    names = raw.read_text().splitlines()[0]
    bad(run("release", bare, out, *BOUNDS, *TARGET), "is it a record")
    bad(run("release", bare, out, *BOUNDS, *TARGET, "--header", names, "--types", "town"), "column=type")
    good(run("release", bare, out, *BOUNDS, *TARGET, "--header", names, "--types", "id=text", "--json"))
    table = zil.load(out).data
    assert ",".join(table.columns) == names
    assert len(table) == 500
    assert set(map(type, table["id"])) == {str}


def test_release_refuses(run, raw, tmp_path):
    out = tmp_path / "out.csv"
    bad(run("release", tmp_path / "none.csv", out, *BOUNDS, *TARGET), "none.csv")
    bad(run("release", raw, tmp_path / "out.xlsx", *BOUNDS, *TARGET), "xlsx")
    bad(run("release", raw, out, "--bounds", "height=0:3", *TARGET), "height")
    bad(run("release", raw, out, "--bounds", "town=0:3", *TARGET), "town")
    bad(run("release", raw, out, *BOUNDS, *TARGET, "--missing", "maybe"), "missing must be one of")
    bad(run("release", raw, out, *BOUNDS, "--mechanism", tmp_path / "m.json"), "not both")
    bad(run("release", raw, out, "--mechanism", tmp_path / "m.json"), "no such file")
    assert not out.exists()


@pytest.fixture
def published(tmp_path):
    """A simulated release of a linear model and its path."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (4000, 2))
    table = pandas.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": 1 + 2 * x[:, 0] - x[:, 1] + rng.normal(size=4000)})
    table["visit"] = (table["y"] > 1).astype(int)
    path = tmp_path / "published.csv"
    m = zil.Mechanism({"a": (-1, 1), "b": (-1, 1)}, zero_prob=0.3, scale=1.0)
    m.simulate(table, rng=3).save(path)
    return path


@pytest.mark.parametrize("loss", ["squared", "quantile:0.5"])
def test_fit(run, published, loss):
    expected = zil.fit(loss, published, y="y", x=["a", "b"], method="rb")
    arguments = ["fit", published, "--loss", loss, "--y", "y", "--x", "a, b", "--method", "rb"]
    facts = json.loads(good(run(*arguments, "--json")))
    assert facts["params"] == expected.params.tolist()
    assert facts["bse"] == expected.bse.tolist()
    assert facts["converged"] is True
    assert good(run(*arguments)).strip() == str(expected.summary()).strip()


def test_fit_of_a_location_and_without_intercept(run, published):
    facts = json.loads(good(run("fit", published, "--loss", "quantile:0.5", "--y", "a", "--x", "", "--json")))
    assert facts["names"] == ["Intercept"]
    arguments = ["fit", published, "--loss", "squared", "--y", "y", "--x", "a", "--no-intercept", "--json"]
    assert json.loads(good(run(*arguments)))["names"] == ["a"]


def test_fit_that_does_not_converge_is_exit_code_1(run, published):
    """Separated data: a number would be wrong, so nulls and a warning come, and a script can tell."""
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"x": [-2.0, -1.0, 1.0, 2.0], "y": [0, 0, 1, 1]})  # separated
    zil.Mechanism({"x": (-2, 2)}, zero_prob=1.0, scale=1.0).simulate(table, rng=0).save(published)
    code, out, err = run("fit", published, "--loss", "logistic", "--y", "y", "--x", "x", "--method", "naive", "--json")
    assert code == 1
    facts = json.loads(out)
    assert facts["converged"] is False
    assert facts["bse"] == [None, None]
    assert err.startswith("zil: ConvergenceWarning: ")


def test_fit_refuses(run, published):
    bad(run("fit", published, "--y", "y"), "--loss")
    bad(run("fit", published, "--loss", "cubic", "--y", "y"), "loss must be one of")
    bad(run("fit", published, "--loss", "quantile:2", "--y", "y"), "tau")
    bad(run("fit", published, "--loss", "squared", "--y", "z"), "'z'")
    bad(run("fit", published, "--loss", "squared", "--y", "y", "--x", "a,c"), "'c'")
    bad(run("fit", published, "--loss", "squared", "--y", "y", "--method", "magic"), "method")
    bad(run("fit", published, "--loss", "logistic", "--y", "y", "--x", "a"), "y")
    bad(run("fit", "nowhere.parquet", "--loss", "squared", "--y", "y"), "nowhere.parquet")


def test_audit(run, tmp_path, monkeypatch):
    file = tmp_path / "m.json"
    file.write_text(good(run(*CALIBRATE, "--json")))
    arguments = ["audit", "--mechanism", file, "--unit", "record", "--n-samples", 20_000]
    facts = json.loads(good(run(*arguments, "--json")))
    assert facts["passed"] is True
    assert facts["contradictions"] == []
    assert facts["questions"] > 500
    assert facts["claimed"] == mechanism().delta(np.array(facts["epsilons"]), "record").tolist()
    assert "passed" in good(run(*arguments))
    bad(run("audit", "--mechanism", file), "--unit")
    bad(run(*arguments[:-1], 5), "--n-samples must")
    monkeypatch.setattr(zil.AuditResult, "passed", False)
    assert run(*arguments)[0] == 1


def test_tradeoff(run):
    curve = zil.tradeoff(1, 0.5, 0.05)
    facts = json.loads(
        good(
            run(
                "tradeoff",
                "--dim",
                1,
                "--c",
                0.5,
                "--zero-prob",
                0.05,
                "--alpha",
                "0,0.1",
                "--epsilon",
                "0.5",
                "--json",
            )
        )
    )
    assert facts["beta"] == [curve(0.0), curve(0.1)]
    assert facts["delta"] == [curve.delta(0.5)]
    assert facts["advantage"] == curve.advantage
    assert facts["gaussian_mu"] is None  # there is none with an atom, and JSON has no infinity
    text = good(run("tradeoff", "--dim", "inf", "--c", 0.5))
    assert f"{zil.tradeoff(np.inf, 0.5).advantage:.6g}" in text


def test_tradeoff_plot(run, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "curve.png"
    good(run("tradeoff", "--dim", 4, "--c", 0.5, "--zero-prob", 0.05, "--plot", path))
    assert path.read_bytes().startswith(b"\x89PNG")
    bad(run("tradeoff", "--dim", 1, "--c", 0.5, "--plot", tmp_path / "curve.tale"), "tale")


@pytest.mark.parametrize("command", ["", *(c.callback.__name__ for c in cli.app.registered_commands)])
def test_help_everywhere(run, command):
    out = good(run(*([command] if command else []), "--help"))
    assert "Usage" in out


def test_nothing_asked_prints_the_help(run):
    code, out, _ = run()
    assert code == 2
    assert "calibrate" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fly"], ["fly"]),
        (["calibrate", "--colour", "red"], ["--colour"]),
        (["calibrate", *TARGET], ["--bounds"]),
        (["calibrate", *BOUNDS, "--epsilon", "1", "--delta", "0.1", "--unit", "record"], ["--zero-prob"]),
        (["calibrate", *BOUNDS, "--zero-prob", "0.05", "--epsilon", "1", "--delta", "0.1"], ["--unit"]),
        (["calibrate", *BOUNDS, "--zero-prob", "0.05", "--unit", "record"], ["epsilon and delta"]),
        (["calibrate", *BOUNDS, *TARGET, "--scale", "age=3"], ["not both"]),
        (["calibrate", "--bounds", "age", *TARGET], ["NAME=LOW:HIGH", "'age'"]),
        (["calibrate", "--bounds", "age=5", *TARGET], ["NAME=LOW:HIGH"]),
        (["calibrate", "--bounds", "age=young:90", *TARGET], ["'young' is not a number"]),
        (["calibrate", "--bounds", "age=1:2", "--bounds", "age=1:3", *TARGET], ["'age' is given twice"]),
        (["calibrate", "--bounds", "age=90:18", *TARGET], ["age"]),
        (["calibrate", "--bounds", "age=0:inf", *TARGET], ["age"]),
        (["calibrate", *BOUNDS, *TARGET[:-2], "town"], ["unit must be one of", "town"]),
        (["calibrate", *BOUNDS, "--zero-prob", "0.2", *TARGET[2:]], ["delta"]),
        (["calibrate", *BOUNDS, "--zero-prob", "nan", *TARGET[2:]], ["--zero-prob must"]),
        (["calibrate", *BOUNDS, "--zero-prob", "often", *TARGET[2:]], ["--zero-prob"]),
        (["report", "nowhere.csv"], ["nowhere.csv"]),
        (["report", "table.txt"], [".csv"]),
        (["report"], ["FILE"]),
        (["tradeoff", "--dim", "1"], ["--c"]),
        (["tradeoff", "--dim", "many", "--c", "1"], ["--dim", "many"]),
        (["tradeoff", "--dim", "1", "--c", "-1"], ["c"]),
        (["tradeoff", "--dim", "1", "--c", "1", "--alpha", "2"], ["alpha"]),
    ],
)
def test_bad_input(run, arguments, words):
    bad(run(*arguments), *words)


@pytest.mark.parametrize("content", ["", "{}", '{"bounds": 3, "zero_prob": 0, "scale": {}}', "not json"])
def test_bad_mechanism_file(tmp_path, content):
    path = tmp_path / "m.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="was not written by"):
        cli._read_mechanism(path)


def test_the_script_is_installed():
    done = subprocess.run(
        [sys.executable, "-c", "from zil.interfaces.cli import run; run()", "tradeoff", "--dim", "x", "--c", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "zil: --dim: 'x' is not a number\n"


def test_without_typer_it_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; import zil.interfaces.cli"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "zil: the command line needs typer and rich: pip install 'zil[cli]'\n"


def test_reproduce(run, tmp_path):
    out = good(run("reproduce", "table1", "--repetitions", "2", "--methods", "oracle,rb", "--processes", "1", "--json"))
    rows = json.loads(out)["rows"]
    assert {row["estimator"] for row in rows} == {"oracle", "rb"}
    assert len(rows) == 24
    out = good(run("reproduce", "figure1", "--out", tmp_path))
    assert "Figure 1" in out
    assert (tmp_path / "figure1.csv").exists()


def test_reproduce_bad_input(run):
    bad(run("reproduce", "table9"), "table9")
    bad(run("reproduce", "table1", "--repetitions", "0"), "repetitions")
    bad(run("reproduce", "table1", "--methods", "magic"), "magic")


def test_bounds_with_commas(run):
    """`a=0:1,b=0:1` was taken for one column."""
    together = json.loads(good(run("calibrate", "--bounds", "age=18:90, income=0:1e5", *TARGET, "--json")))
    assert together == json.loads(good(run(*CALIBRATE, "--json")))
    facts = json.loads(good(run("calibrate", "--bounds", "a,b=0:1", *TARGET, "--json")))
    assert facts["bounds"] == {"a,b": [0.0, 1.0]}
    bad(run("calibrate", "--bounds", "age=1:2,age=1:3", *TARGET), "--bounds", "'age'", "twice")


def test_refusals_speak_of_options(run, tmp_path):
    """Nobody types `repeat=True` into a shell."""
    src, out = tmp_path / "in.csv", tmp_path / "out.csv"
    asked = ["--bounds", "a=0:1", "--zero-prob", 0.1, "--scale", "a=1"]
    src.write_text("id,a,types\n1,0.5,x\n2,0.25,y\n")
    good(run("release", src, out, *asked, "--row-id", "id", "--json"))

    def refused(*arguments, words, source=src, target=tmp_path / "b.csv", release_id="b"):
        answer = run("release", source, target, *asked, *arguments, "--release-id", release_id)
        bad(answer, *words)
        for python in ("=True", "=False", "release_id", "row_id", "header=", "types=", "columns=", "ledger="):
            assert python not in answer[2]
        return answer[2]

    refused("--row-id", "id", words=["--append takes only new ones"])
    once = tmp_path / "once.csv"
    once.write_text("a\n0.5\n")
    good(run("release", once, tmp_path / "once.out.csv", *asked, "--json"))
    refused(source=once, words=["(--repeat with its own --release-id publishes it anyway)"])
    once.write_text("a\n0.5\n0.25\n")
    refused(
        source=once, words=["zil: IN was released before", "without --row-id", "(--repeat with its own --release-id"]
    )
    src.write_text("id,a,types\n1,0.5,x\n2,0.25,y\n3,0.125,z\n")
    refused("--row-id", "id", words=["--append takes only new ones"])
    refused(words=["this call has no row id"])
    refused("--types", "types=text", words=["zil: --types are for a Parquet OUT"])
    parquet = tmp_path / "b.parquet"
    refused("--types", "note=text", target=parquet, words=["zil: --types names 'note', which the header of IN has not"])
    refused("--types", "types=date of birth", target=parquet, words=["zil: --types of 'types' must be one of text"])
    bare = tmp_path / "bare.csv"
    bare.write_text("7,0.5\n8,0.25\n")
    message = refused(source=bare, words=["Say --header NAMES if the file has no line of names, --header yes if these"])
    assert "0.5" not in message
    refused("--header", "id,", source=bare, words=["zil: --header must list the names of all columns"])
    table = tmp_path / "in.parquet"
    pd.DataFrame({"a": [0.5], "header": ["x"]}).to_parquet(table)
    refused("--header", "a,b", source=table, words=["zil: --header is for a CSV IN"])
    bad(run("calibrate", "--bounds", "a=0:1", "--zero-prob", 0.1, "--mu", 1, "--unit", "record"), "without --limit")


@pytest.mark.filterwarnings("default")
def test_warnings_speak_of_options(run, tmp_path):
    """The Python call that says "clean" is nothing for a command line."""
    path = tmp_path / "plain.csv"
    pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0) % 7}).to_csv(path, index=False)
    code, _, err = run("fit", path, "--loss", "squared", "--y", "y")
    assert code == 0
    assert err.startswith("zil: UserWarning: no metadata beside the CSV file")
    assert "zil.Noise" not in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("message", "spoken"),
    [
        ("column 'row_id' not in the header", "column 'row_id' not in the header"),
        ("row_id='zero_prob'", "--row-id='zero_prob'"),
        ("say with ledger= where it may lie", "say with --ledger where it may lie"),
        ("leave it out with columns=", "leave it out with --columns"),
        ("zero_prob must lie\nin [0, 1]", "--zero-prob must lie in [0, 1]"),
        ("column 'src' and 'dst' and src", "column 'src' and 'dst' and IN"),
        ("the types of two columns", "the types of two columns"),
    ],
)
def test_words_of_the_command_line(message, spoken):
    """Names of columns stay what they are."""
    assert cli._spoken(message) == spoken
