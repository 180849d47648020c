"""Checks of a gate as JUnit XML."""

from collections.abc import Sequence
from xml.etree import ElementTree

from stumble.gate.check_case import CheckCase


def render_junit_suite(cases: Sequence[CheckCase], nothing: str) -> str:
    """Render the XML of a suite; one without cases has an error with the message `nothing`.

    Unknown is an error, never a pass.
    """
    tree = ElementTree.Element("testsuite", name="stumble gate", tests=str(max(1, len(cases))))
    for each in cases or (CheckCase(name="gate", verdict="unknown", message=nothing),):
        case = ElementTree.SubElement(tree, "testcase", classname=each.classname, name=each.name)
        if each.verdict != "pass":
            kind = "failure" if each.verdict == "fail" else "error"
            ElementTree.SubElement(case, kind, message=each.message)
    for kind in ("failure", "error"):
        tree.set(f"{kind}s", str(len(tree.findall(f"testcase/{kind}"))))
    suites = ElementTree.Element("testsuites")
    suites.append(tree)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"
