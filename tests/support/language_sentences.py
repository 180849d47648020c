"""What shows each sentence of the language page: a pattern in the programs, or a named test.

A pattern of `CODE`, `SOURCE`, `TOKENS`, `TREE`, `IR` or `BETTER` occurs in at least one program
(its source without or with comments, its golden tokens, tree, IR, optimised IR); one of `NEVER`
occurs in the code of none. A `TEST` is a test function of this repository.
"""

import re
from typing import Literal, NamedTuple

type ShownBy = Literal["CODE", "SOURCE", "TOKENS", "TREE", "IR", "BETTER", "NEVER", "TEST"]
CODE: ShownBy = "CODE"
SOURCE: ShownBy = "SOURCE"
TOKENS: ShownBy = "TOKENS"
TREE: ShownBy = "TREE"
IR: ShownBy = "IR"
BETTER: ShownBy = "BETTER"
NEVER: ShownBy = "NEVER"
TEST: ShownBy = "TEST"
OPEN_QUESTIONS: tuple[str, ...] = ()
"""What the page leaves to a reader's guess; a question that is found belongs here until the page
answers it.
"""


class SentenceWitness(NamedTuple):
    """How the beginning of a sentence is shown."""

    begins: str
    kind: ShownBy
    shown: str


OTHER_COMPILER = "test_two_compilers_and_the_interpreter_come_to_the_same"
WITNESSES = tuple(
    SentenceWitness(*row)
    for row in (
        ("A program of the small C is one file", TEST, OTHER_COMPILER),
        (
            "This page says all that the programs use",
            TEST,
            "test_trees_have_only_what_the_page_lists",
        ),
        ("Files are ASCII", NEVER, r"[^\x00-\x7f]|\r|[^\n]\Z"),
        ("Every program is right", TEST, OTHER_COMPILER),
        ("Where this page says *never*", TEST, OTHER_COMPILER),
        ("**Names**", CODE, r"\b[a-z]\w*_\w*\d*\b"),
        ("Not a keyword", TEST, "test_a_program_is_its_tokens"),
        ("`const int void if else", CODE, r"\bcontinue\b"),
        ("**Numbers**: decimal", NEVER, r"(?<![\w.])0\d"),
        ("hexadecimal", CODE, r"\b0[xX][0-9a-fA-F]+\b"),
        ("At most 2147483647", CODE, r"\b2147483647\b"),
        ("No suffix", NEVER, r"\b\d[\da-fA-FxX]*[uUlL]\b"),
        ("**Characters**", CODE, r"'[a-z]'"),
        ("`'a'`, or one of", NEVER, r"'\\[^nt\\'\"0]"),
        (
            "Their value is the ASCII code",
            TREE,
            r'"CharacterLiteral","value":"10"|"value":"10"[^}]*Char',
        ),
        ("**Signs**", TOKENS, r'"kind":"caret"'),
        ("`( ) [ ] { } ; ,", TEST, "test_every_sign_of_the_page_is_in_a_program_and_no_other"),
        ("The longest that fits", TOKENS, r'"text":"<<"'),
        ("**Comments**", SOURCE, r"//"),
        ("`// to the end of the line`", SOURCE, r"/\*[^*]*\n(?:[^*]|\*(?!/))*\*/"),
        (
            "Spaces, tabs, newlines and comments",
            TEST,
            "test_comments_and_parentheses_leave_no_node",
        ),
        ("There is no preprocessor", NEVER, r"""(?<!')#|(?<![\\'])"|\d\.\d"""),
        ("`{x}` is x any number", TEST, "test_each_rule_of_the_grammar_is_used"),
        ("Binary operators all take their left", TREE, r"."),
        ("An `else` belongs to the nearest", CODE, r"\bif \([^;{]*\)\s*\n?\s*if |else if "),
        (
            "An assignment is a statement",
            TEST,
            "test_programs_use_the_operators_of_the_page_and_assign_only_in_statements",
        ),
        ("**Values** are `int`", CODE, r"-2147483647 - 1|2147483647"),
        ("`+ - *`, unary `-`", CODE, r"\* (?:1103515245|31|33|\d{6,})|2147483647 \+"),
        ("`/` cuts towards zero", CODE, r" [/%] "),
        ("`>>` keeps the sign", CODE, r">>"),
        ("Never: division by zero", TEST, OTHER_COMPILER),
        ("`! == != <", CODE, r"= [^;=\n]* (?:==|<|>) [^;\n]*;|\([^()]*(?:==|<|>)[^()]*\) [-+*]"),
        ("Whatever is not 0 is true", CODE, r"(?:if|while) \(!?\w+\)"),
        ("`&&` and `||` do not compute", CODE, r"(?:&&|\|\|)[^;]*\w\("),
        ("In what order other operands", TEST, OTHER_COMPILER),
        ("**Arrays** have one or two", CODE, r"\bint \w+\[\d+\]\[\d+\]"),
        ("An array as an argument", CODE, r"\bint \w+\[\]"),
        ("A parameter `int v[]`", CODE, r"\w\(\w+\[[^\]]+\](?:,|\))"),
        ("`int w[][8]`", CODE, r"\bint \w+\[\]\[\d+\]"),
        ("Never: an index outside", TEST, OTHER_COMPILER),
        ("**Variables** live in the block", CODE, r"for \(int "),
        ("An inner one hides", TEST, "test_a_program_hides_an_outer_name"),
        (
            "Functions and global variables live",
            CODE,
            r"(?m)^(?:const )?int \w+(?:\[\d+\])*(?: =|;|,)",
        ),
        ("Global variables are 0", CODE, r"(?m)^int \w+(?:\[\d+\])*;"),
        ("Never: reading a local variable", TEST, OTHER_COMPILER),
        ("**Initialisers** of arrays", CODE, r"\{\s*\{"),
        ("what is left out is 0", CODE, r"= \{0\}|= \{\}|\[\d+\] = \{[^}]*\}"),
        (
            "Of global variables they are numbers",
            CODE,
            r"(?m)^(?:const )?int \w+(?:\[\d+\])* = \{?-?\d",
        ),
        ("of local ones any expressions", CODE, r"(?m)^ +int \w+(?:\[\d+\])* = [^;]*\w\("),
        ("`const` variables and arrays", CODE, r"\bconst int"),
        ("A `const` array is passed only", CODE, r"\(.*const int \w+\["),
        ("A local array is new", CODE, r"(?m)^ +int \w+\[\d+\]"),
        (
            "Functions may call themselves",
            TEST,
            "test_a_function_calls_itself_and_one_is_declared_before",
        ),
        ("A function is declared", TEST, "test_a_function_calls_itself_and_one_is_declared_before"),
        ("One that gives `int` always returns", CODE, r"(?m)^void \w+\("),
        ("`int main(void)` is where", CODE, r"\bint main\(void\)"),
        ("What it returns, modulo 256", TEST, "test_an_exit_code_is_what_main_returns_modulo_256"),
        (
            "The **runtime** has four functions",
            TEST,
            "test_numbers_are_read_and_printed_as_the_page_says",
        ),
        ("One line of JSON for each token", TEST, "test_a_program_is_its_tokens"),
        ("`text` is what stands", TEST, "test_every_token_stands_where_it_says"),
        ("`line` and `column` are those", TEST, "test_every_token_stands_where_it_says"),
        ("`start` is true where only", TOKENS, r'"start":true'),
        ("`space` is true where the character", TOKENS, r'"space":true'),
        ("`kind` of a keyword is the keyword", TOKENS, r'"kind":"while"'),
        ("One line of JSON: a node", TREE, r"\A[^\n]*\n\Z"),
        ("A node is an object with `kind`", TEST, "test_trees_have_only_what_the_page_lists"),
        ("Keys that a node does not need", TEST, "test_trees_have_only_what_the_page_lists"),
        ("White space and the order of keys", TEST, "test_trees_are_worth_their_nodes"),
        ("Parentheses leave no node", TEST, "test_comments_and_parentheses_leave_no_node"),
        ("Nothing is added", TEST, "test_trees_have_only_what_the_page_lists"),
        (
            "Global declarations with several names",
            CODE,
            r"(?m)^(?:const )?int \w+(?:\[\d+\])*(?: = \d+)?, \w+",
        ),
        ("local ones are one DeclStmt", CODE, r"(?m)^ +int \w+(?: = [\w-]+)?, \w+"),
        ("The parameters `v[]` and `w[][8]`", TREE, r'"int \(\*\)\[\d+\]"'),
        ("`int x = 1, y[2];` inside", TEST, "test_the_example_of_a_tree_is_true"),
        ("Text of LLVM 22", IR, r"define (?:dso_local )?(?:noundef )?(?:signext )?i32 @main\(\)"),
        ("`i32 @get_int()`", IR, r"declare (?:signext )?i32 @get_int\(\)"),
        ("It must print and return", TEST, "test_code_is_right_or_not"),
        ("The lines `target triple`", TEST, "test_code_of_another_machine_is_made_neutral"),
        ("Inline assembly is refused", TEST, "test_ir_with_assembly_in_it_is_not_accepted"),
        (
            "IR is made into code by clang",
            TEST,
            "test_golden_is_worth_100_at_each_stage_from_the_source_to_the_end",
        ),
        ("The intrinsic functions that LLVM", BETTER, r"@llvm\.\w+"),
        (
            "T4 is measured by the number",
            TEST,
            "test_instructions_are_counted_exactly_and_alike_by_all_who_count",
        ),
        (
            "What T4 is given in place",
            TEST,
            "test_golden_ir_has_no_instruction_that_the_page_does_not_list",
        ),
        ("for T4:", TEST, "test_golden_ir_has_no_instruction_that_the_page_does_not_list"),
        (
            "`add alloca and ashr",
            TEST,
            "test_golden_ir_has_no_instruction_that_the_page_does_not_list",
        ),
        (
            "for T5: these, and",
            TEST,
            "test_golden_ir_has_no_instruction_that_the_page_does_not_list",
        ),
        ("They carry flags", BETTER, r"\bnuw\b|\bnsw\b"),
        ("`signext` says", BETTER, r"\bsignext\b"),
        ("`getelementptr` also stands", BETTER, r"getelementptr inbounds[^(\n]*\(i8, ptr @"),
        (
            "GNU syntax for RV64IM",
            TEST,
            "test_golden_is_worth_100_at_each_stage_from_the_source_to_the_end",
        ),
        ("`sp` is a multiple of 16", TEST, "test_golden_keeps_the_calling_convention"),
        ("`s0`-`s11` and `sp`", TEST, "test_golden_keeps_the_calling_convention"),
        ("`main` must be `.globl`", TEST, "test_golden_keeps_the_calling_convention"),
        (
            "It is linked with the runtime",
            TEST,
            "test_golden_is_worth_100_at_each_stage_from_the_source_to_the_end",
        ),
        ("Refused:", TEST, "test_assembly_that_reads_or_grows_is_not_accepted"),
        ("`.include`, `.incbin`", TEST, "test_assembly_that_reads_or_grows_is_not_accepted"),
        (
            "One RV64IM core",
            TEST,
            "test_instructions_are_counted_exactly_and_alike_by_all_who_count",
        ),
        ("A program may use 64 MiB", TEST, "test_memory_output_and_ecalls_are_bounded"),
        ("Code cannot be written to", TEST, "test_a_crash_is_the_programs_own"),
        ("Reading control registers", TEST, "test_a_crash_is_the_programs_own"),
    )
)


def split_page(page: str) -> list[str]:
    """Return the sentences of the page outside of its tables, grammar and examples."""
    text = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith(("|", "#", "- ")) or not line.strip():
            blocks.append([])
        if line.strip() and not line.startswith(("|", "#")):
            blocks[-1].append(line.removeprefix("- ").strip())
    ends = r"(?<=[.:;])\s+(?=[A-Z`*<]|what|of local|local ones|hexadecimal|for T)"
    return [each for block in blocks for each in re.split(ends, " ".join(block)) if each]
