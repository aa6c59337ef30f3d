#!/usr/bin/env python3
"""Copies the wire cases of some kinds and revisions into a folder of their own.

  select_cases.py CASES KINDS REVISIONS OUT

CASES is a folder of case files; KINDS and REVISIONS are separated by blanks. A case of revision "any" is always taken.
"""
import json
import pathlib
import sys


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    source, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[4])
    kinds, revisions = sys.argv[2].split(), set(sys.argv[3].split()) | {"any"}
    out.mkdir(parents=True)
    for kind in kinds:
        cases = json.loads((source / f"{kind}.json").read_text(encoding="utf-8"))
        chosen = [case for case in cases if case["revision"] in revisions]
        (out / f"{kind}.json").write_text(json.dumps(chosen), encoding="utf-8")
        print(f"{kind}: {len(chosen)} of {len(cases)} cases")


if __name__ == "__main__":
    main()
