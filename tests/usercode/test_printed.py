"""What the user's code prints: kept up to a bound, at a cost that grows with what is printed (finding A26)."""

from atp.usercode.printed import LONGEST, Printed


class Text(str):
    """A text that counts how often it is copied into another."""

    __slots__ = ()
    copied = 0

    def __radd__(self, other: str) -> str:
        Text.copied += len(other)
        return other + str(self)


def test_pieces_without_a_line_end_are_not_joined_again_and_again() -> None:
    printed = Printed()
    for _ in range(200_000):
        printed.write(Text("tok "))
    assert Text.copied == 0
    (line,) = printed.finish()
    assert line.startswith("tok tok ")
    assert line.endswith("(800000 characters)")
    assert len(line) < LONGEST + 100


def test_lines_in_pieces() -> None:
    printed = Printed()
    for piece in ("a", "b\nc\r\n", "\n", "", "d"):
        printed.write(piece)
    assert printed.finish() == ["ab", "c", "", "d"]
    printed.write("too late")
    assert printed.finish() == ["ab", "c", "", "d"]
