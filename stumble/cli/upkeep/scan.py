"""`stumble scan`: find secrets in stores, recordings and other files."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.errors import ExitCode

if TYPE_CHECKING:
    from stumble.store.secret_scan import FileFindings


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def scan(paths: tuple[Path, ...], as_json: bool) -> None:
    """Find secrets in files: known values, token formats, and values after a telling name.

    Without PATHS, scans the store. Recordings are read frame by frame, tables row by row;
    compressed bodies and snapshots are unpacked. Prints class, length and place of a secret,
    never its value. Exit codes: 0 none found, 1 at least one found, 6 none found, but a file
    could not be read.

    \b
    stumble scan
    stumble scan refund.tape
    stumble scan . --json
    """
    from stumble.store.secret_scan import scan_files
    from stumble.user_data.known_secrets import find_known_secrets
    from stumble.user_data.paths import store_root

    paths = paths or tuple(root for root in (store_root(),) if root.is_dir())
    findings = tuple(scan_files(paths, find_known_secrets()))
    if as_json:
        click.echo(
            json.dumps(
                [_findings_to_dict(each) for each in findings if each.found or each.unread],
                indent=2,
            )
        )
    else:
        for each in findings:
            for line in _findings_to_lines(each):
                click.echo(line)
    secrets = sum(len(each.found) for each in findings)
    files = sum(1 for each in findings if each.found)
    click.echo(f"{secrets:,} secrets in {files:,} of {len(findings):,} files", err=True)
    for each in findings:
        if each.unread is not None:
            click.echo(f"not read: {each.path}: {each.unread}", err=True)
    if secrets:
        raise SystemExit(ExitCode.FINDING)
    if any(each.unread is not None for each in findings):
        raise SystemExit(ExitCode.HARNESS)


def _findings_to_dict(each: "FileFindings") -> dict[str, object]:
    from traces.redaction.secret_scan import SECRET_CLASSES

    return {
        "path": str(each.path),
        "unread": each.unread,
        "secrets": [
            {
                "class": SECRET_CLASSES.get(finding.kind, finding.kind),
                "length": finding.length,
                "where": where,
            }
            for where, finding in each.found
        ],
    }


def _findings_to_lines(each: "FileFindings") -> list[str]:
    from traces.redaction.secret_scan import SECRET_CLASSES

    counts = Counter(SECRET_CLASSES.get(finding.kind, finding.kind) for _, finding in each.found)
    summary = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    where = each.found[0][0] if each.found else ""
    return [f"{each.path}: {summary}; first at {where}"] if each.found else []
