"""Malformed commands for ``test_fuzz_cli.py``; the functions also write the files that their commands need."""

import random
from collections.abc import Callable
from pathlib import Path

VERBS = ("run", "arena", "reproduce", "report", "status", "tune", "evaluate", "list", "doctor", "bench", "data")
WORDS = (
    "",
    " ",
    "nope",
    "top-k",
    "TOPK",
    "o[red]x[/red]",
    "[/b]",
    "ü" * 40,
    "a" * 300,
    "-",
    "--",
    "\t",
    "None",
    "nan",
    "../..",
    "/dev/null",
    "x=y",
    "=",
    "{}",
    "'",
    '"',
    "%s",
    "\\",
    "🎲",
    ":skull:",
    "0x10",
    "1e400",
    "true",
)
NUMBERS = ("-1", "0.5", "nan", "inf", "-inf", "1e400", "10" * 30, "zwei", "", "1,5", "0x1F", "1_0", "--1", "1e3x", "٣x")
SMALL = ["--seeds", "2", "--horizon", "10", "--policy", "greedy"]


def bad_number(rng: random.Random, folder: Path) -> list[str]:
    option = rng.choice(["--seeds", "--horizon", "--first-seed", "--delay", "--missing", "--degree"])
    return ["run", rng.choice(["topk", "pricing"]), *SMALL, f"{option}={rng.choice(NUMBERS)}x"]


def out_of_range(rng: random.Random, folder: Path) -> list[str]:
    option, value = rng.choice(
        [
            ("--seeds", "0"),
            ("--seeds", "-3"),
            ("--seeds", "9" * 12),
            ("--horizon", "0"),
            ("--horizon", "9" * 13),
            ("--first-seed", "4294967296"),
            ("--first-seed", "-1"),
            ("--degree", "0"),
            ("--degree", "1000"),
            ("--delay", "-2"),
            ("--delay", "9" * 14),
            ("--missing", "1.5"),
            ("--missing", "-0.1"),
            ("--device", "tpu"),
            ("--format", "xml"),
        ]
    )
    return ["run", "topk", "--policy", "greedy", option, value]


def unknown_name(rng: random.Random, folder: Path) -> list[str]:
    word = rng.choice(WORDS) + "?"
    option = rng.choice(["--policy", "--feedback", "--model"])
    return ["run", "topk", "--seeds", "2", "--horizon", "10", option, word]


def unknown_benchmark(rng: random.Random, folder: Path) -> list[str]:
    return [rng.choice(["run", "tune"]), rng.choice(WORDS) + "?"]


def unknown_option(rng: random.Random, folder: Path) -> list[str]:
    verb = rng.choice(VERBS)
    option = rng.choice(["--sedes", "--polcy", "--set-", "--outt", "--stor", "-q", "--feedbck", "--importt", "--jbos"])
    return [verb, option, rng.choice(WORDS)]


def unknown_verb(rng: random.Random, folder: Path) -> list[str]:
    return [
        rng.choice(["runn", "arna", "reprodce", "repot", "halt", "Run", "bench nope", "data"]),
        rng.choice(WORDS) + "?",
    ]


def bad_setting(rng: random.Random, folder: Path) -> list[str]:
    pair = rng.choice(
        [
            "policy_lr",
            "policy_lr=",
            "=3",
            "policy_lr=-1",
            "policy_lr=nan",
            "policy_lr=inf",
            "policy_lr=zwei",
            "forgetting=0.1",
            "surrogate=nope",
            "surrogate.lam=3",
            "surrogate.=3",
            ".=3",
            "a.b.c=1",
            "benchmark.k=0",
            "benchmark.k=99",
            "benchmark.nope=1",
            "benchmark.items=99999999999",
            "benchmark.degree=-4",
            "model=flow",
            "alpha.max=2",
            "alpha.min=0.9",
            "alpha.gate=never",
            "epsilon=0.1",
            "scaling=maybe",
            "clip=0",
            "model.start=x",
            "model.width=3",
            "k=3",
            "rate_offset=-1",
        ]
    )
    return ["run", "topk", *SMALL, "--set", pair]


def idle_setting(rng: random.Random, folder: Path) -> list[str]:
    pair = rng.choice(["nuisance.lr=0.1", "nuisance=linear", "generative.scenarios=4", "alpha.time_scale=3"])
    return ["run", "topk", "--policy", "dfhpg", "--feedback", "full", "--set", pair]


def bad_preset(rng: random.Random, folder: Path) -> list[str]:
    path = folder / "preset.json"
    content = rng.choice(
        [
            b"",
            b"{",
            b"[]",
            b"3",
            b'{"policy_lr": "x"}',
            b'{"nope": 1}',
            b'{"alpha": {"max": 1}}',
            b"\xff\xfe",
            b"null",
            b"[" * 5000,
            b'{"policy_lr": NaN}',
            b'{"policy_lr": 1e999}',
            b'{"surrogate": 3}',
            b'{"policy_lr": -1}',
        ]
    )
    path.write_bytes(content)
    given = rng.choice([str(path), str(folder), str(folder / "missing.json")])
    return ["run", "topk", *SMALL, "--preset", given]


def bad_module(rng: random.Random, folder: Path) -> list[str]:
    source = rng.choice(
        [
            "raise ValueError('no')",
            "def f(:",
            "import sys; sys.exit(0)",
            "1/0",
            "import nowhere_at_all",
            "x = 3",
            "raise SystemExit('bye')",
            "\x00",
            "import os; os.nope",
        ]
    )
    (folder / "mine.py").write_text(source)
    if source == "x = 3":
        return ["run", "topk", *SMALL, "--import", rng.choice(["mine.nope", ".mine", "mi ne", "", "mine:x", "../mine"])]
    verb = rng.choice([["run", "topk", *SMALL], ["list", "policies"], ["tune", "topk", "--trials", "1"]])
    return [*verb, "--import", "mine"]


def bad_oracle(rng: random.Random, folder: Path) -> list[str]:
    (folder / "x.csv").write_text("1,2\n3,4\n")
    (folder / "c.csv").write_text("1,2,3\n4,5,6\n")
    (folder / "mine.py").write_text(
        "import regretless as rg\nok = rg.oracles.top_k(3, 1)\nwide = rg.oracles.top_k(4, 1)\nnumber = 3\n"
        "def fails():\n    raise ValueError('no')\ndef leaves():\n    raise SystemExit(0)\n"
        "def wants(x):\n    return ok\n"
        "broken = rg.oracles.external(lambda c: [1.0], 3)\nraises = rg.oracles.external(lambda c: 1 / 0, 3)\n"
        "nan = rg.oracles.external(lambda c: c * float('nan'), 3)\n"
    )
    which = rng.choice(
        [
            "mine:nope",
            "mine:number",
            "mine:fails",
            "mine:leaves",
            "mine:wants",
            "mine:broken",
            "mine:raises",
            "mine:nan",
            "mine:wide",
            ".plant:x",
            "nowhere:x",
            "mine",
            ":ok",
            "mine:",
            "mine:ok:ok",
            "milp",
            "shortest_path",
            "",
        ]
    )
    return ["run", "--contexts", "x.csv", "--costs", "c.csv", "--oracle", which, "--policy", "greedy", "--seeds", "1"]


def bad_history(rng: random.Random, folder: Path) -> list[str]:
    good = "1,2,3\n4,5,6\n"
    bad = rng.choice(["", "a,b\n", "1,2\n3\n", "1,nan,3\n4,5,6\n", "1,inf,3\n4,5,6\n", "x\ny\n", "1;2;3\n"])
    (folder / "mine.py").write_text("import regretless as rg\nok = rg.oracles.top_k(3, 1)\n")
    (folder / "x.csv").write_text(good)
    (folder / "c.csv").write_text(bad)
    if rng.random() < 0.3:
        (folder / "c.csv").write_bytes(b"\xff\xfe\x00\x01")
    files = rng.choice(
        [["x.csv", "c.csv"], ["c.csv", "c.csv"], ["x.csv", "."], ["missing.csv", "x.csv"], ["c.csv", "x.csv"]]
    )
    return ["run", "--contexts", files[0], "--costs", files[1], "--oracle", "mine:ok", "--policy", "greedy"]


def half_history(rng: random.Random, folder: Path) -> list[str]:
    some = rng.choice(
        [["--contexts", "x.csv"], ["--costs", "c.csv"], ["--oracle", "a:b"], ["--contexts", "x", "--costs", "c"]]
    )
    return ["run", *rng.choice([[], ["topk"]]), *some]


def bad_out(rng: random.Random, folder: Path) -> list[str]:
    (folder / "file").write_text("I was here first")
    where = rng.choice(["file", "file/below", "/proc/nope", "/dev/null/x", "a" * 300, "file/[/b]"])
    return ["run", "topk", *SMALL, "--out", where]


def bad_study(rng: random.Random, folder: Path) -> list[str]:
    path = folder / "study.toml"
    cell = "[[panels]]\n[[panels.cells]]\nbenchmark='topk'"
    path.write_text(
        rng.choice(
            [
                "",
                "name = 'x'",
                "name = 3",
                "[[",
                f"name = 'main'\n{cell}",
                f"name = 'a b'\n{cell}",
                f"name='x'\nkind='pie'\n{cell}",
                "name='x'\n[[panels]]\n",
                f"name='x'\nnope=1\n{cell}",
                "name='x'\n" + cell.replace("topk", "nope"),
                f"name='x'\nimports=['nowhere']\n{cell}",
                f"name='x'\n{cell}\nseeds=-1",
                "name='x'\n[defaults]\nbenchmark='topk'\npolicies='greedy'\n"
                "[[panels]]\nsweep = {setting = 'nope', values = [1]}",
            ]
        )
    )
    given = rng.choice(["study.toml"] * 4 + ["missing.toml", "missing.py", "nope", "."])
    return ["reproduce", given, "--store", "store"]


def bad_store(rng: random.Random, folder: Path) -> list[str]:
    (folder / "file").write_text("I was here first")
    (folder / "closed" / "plans").mkdir(parents=True)
    (folder / "closed" / "plans" / "x.json").write_text(rng.choice(["", "{}", "[]", '{"studies": 3}', "null", "\x00"]))
    verb = rng.choice([["report", "--out", "r"], ["reproduce", "main", "--quick"], ["report"]])
    bad = ["file", "file/below", "a" * 300] + (["missing", "closed"] if verb[0] == "report" else [])
    store = rng.choice(bad)
    return [*verb, "--store", store]


def bad_reproduce(rng: random.Random, folder: Path) -> list[str]:
    more = rng.choice(
        [
            ["nope"],
            ["main", "nope"],
            ["main", "--jobs", "0"],
            ["main", "--engine", "spark"],
            ["main", "--address", "here:1"],
            ["main", "--seeds", "0"],
            ["main", "--seeds", "9999999999"],
            ["main", "--first-seed", "4294967295"],
            ["main", "--horizon", "0"],
            ["main", "--engine", "ray", "--address", "127.0.0.1:1"],
        ]
    )
    return ["reproduce", *more, "--store", "store"]


def bad_tune(rng: random.Random, folder: Path) -> list[str]:
    more = rng.choice(
        [
            ["--trials", "0"],
            ["--trials", "x"],
            ["--policy", "nope"],
            ["--model", "nope"],
            ["--set", "nope=1"],
            ["--first-seed", "0"],
            ["--first-seed", "1010"],
            ["--seeds", "0"],
            ["--out", "/proc/nope/x.json"],
            ["--store", "file"],
            ["--feedback", "nope"],
            ["--policy", "greedy", "--set", "forgetting=0.1"],
            ["--degree", "0"],
            ["--block", "0"],
        ]
    )
    (folder / "file").write_text("I was here first")
    return ["tune", "topk", "--horizon", "5", "--trials", "1", *more]


def bad_evaluate(rng: random.Random, folder: Path) -> list[str]:
    head = "context_0,decision_0,decision_1,decision_2,total\n"
    (folder / "mine.py").write_text("import regretless as rg\nok = rg.oracles.top_k(3, 1)\nnumber = 3\n")
    (folder / "good.csv").write_text(head + "0.5,1,0,0,2.0\n1.5,0,1,0,3.0\n" * 20)
    content = rng.choice(
        [
            "",
            head,
            head + "x,1,0,0,2\n",
            head + "nan,1,0,0,2\n",
            head + "1,1,0,0,inf\n",
            "a,b\n1,2\n",
            head + "1,1,0\n1,2,3,4,5,6\n",
            head.replace("total", "totel") + "1,1,0,0,2\n",
            head + "1,1,1,1,2\n" * 30,
            "context_0,decision_0,total\n1,1,2\n",
        ]
    )
    (folder / "bad.csv").write_text(content)
    (folder / "bad.log").write_bytes(rng.choice([b"", b"\x00" * 100, rng.randbytes(300), content.encode()]))
    (folder / "bad.parquet").write_bytes(rng.randbytes(300))
    where = rng.choice(["bad.csv", "bad.log", "bad.parquet", "missing.csv", "missing.log", ".", "mine.py"])
    more = rng.choice(
        [
            ["--oracle", "mine:nope"],
            ["--oracle", "mine:number"],
            [],
            ["--oracle", ""],
            ["--policy", "nope"],
            ["--model", "nope"],
            ["--feedback", "nope"],
            ["--learner", "missing.db"],
            ["--learner", "good.csv"],
            ["--function", "mine:nope"],
            ["--function", "mine:number"],
            ["--import", "nowhere"],
        ]
    )
    oracle = [] if not more or "--oracle" in more else ["--oracle", "mine:ok"]
    if rng.random() < 0.5:
        return ["evaluate", where, "--oracle", "mine:ok", "--policy", "greedy"]
    return ["evaluate", "good.csv", *oracle, *more]


def bad_arena(rng: random.Random, folder: Path) -> list[str]:
    (folder / "file").write_text("I was here first")
    more = rng.choice(
        [
            ["nope"],
            ["lin100", "nope"],
            ["--policy", "nope"],
            ["--seeds", "0"],
            ["--seeds", "9999999999"],
            ["--first-seed", "-1"],
            ["--first-seed", "4294967295"],
            ["--jobs", "0"],
            ["--engine", "spark"],
            ["--address", "here:1"],
            ["--out", "file"],
            ["--import", "nowhere"],
            ["--device", "gpu"],
            ["--format", "xml"],
            ["--quick", "--policy", ""],
        ]
    )
    return ["arena", *more, *([] if "--out" in more else ["--out", "store"])]


def bad_rest(rng: random.Random, folder: Path) -> list[str]:
    return rng.choice(
        [
            ["list", "nope"],
            ["list", "policies", "extra"],
            ["status", "--store", "missing"],
            ["status", "--store", "a" * 300],
            ["bench", "nope"],
            ["bench", "speed", "--benchmark", "nope"],
            ["bench", "speed", "--model", "nope"],
            ["bench", "learner", "--policy", "nope"],
            ["bench", "oracle", "--instance", "nope"],
            ["bench", "tuning", "nope"],
            ["data", "fetch"],
            ["data", "fetch", "nope"],
            ["data", "fetch", "energy", "--origin", "http://127.0.0.1:9/", "--data-dir", "d"],
            ["data", "fetch", "energy", "--data-dir", "/proc/nope"],
            ["doctor", "--device", "gpu"],
            ["doctor", "--format", "x"],
            ["run", "topk", "--device", "gpu"],
            ["run", "energy", "--set", "benchmark.instance=nope"],
            ["run", "energy", "--set", "benchmark.split=nope"],
            ["run", "energy", "--horizon", "9999"],
            ["run", "topk", "--data-dir", "."],
            ["run", "energy", "--degree", "4"],
            ["run"],
            ["tune"],
            ["data", "nope"],
            ["bench", "scale", "--horizon", "1"],
        ]
    )


KINDS: tuple[Callable[[random.Random, Path], list[str]], ...] = (
    bad_number,
    out_of_range,
    unknown_name,
    unknown_benchmark,
    unknown_option,
    unknown_verb,
    bad_setting,
    idle_setting,
    bad_preset,
    bad_module,
    bad_oracle,
    bad_history,
    half_history,
    bad_out,
    bad_study,
    bad_store,
    bad_reproduce,
    bad_tune,
    bad_evaluate,
    bad_arena,
    bad_rest,
)
