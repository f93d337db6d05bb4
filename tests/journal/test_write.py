"""A journal is only ever appended to."""

from tests.engine.support.project import Project


def test_the_journal_is_only_ever_appended_to(project: Project) -> None:
    """Were it written anew after every case, what stood there before would move or change."""
    project.write(
        "agent.py",
        """
        import glob
        def run():
            (name,) = glob.glob(".atp/runs/*/journal.jsonl")
            with open(name, "rb") as file, open("sizes", "a") as out:
                print(len(file.read()), __import__("os").fstat(file.fileno()).st_ino, sep=":", file=out)
        """,
    )
    project.test(project.cases(*[f"c{number}" for number in range(6)]), "-n", "agent.py:run")
    sizes, inodes = zip(*(line.split(":") for line in project.lines("sizes")), strict=True)
    whole = (project.runs()[-1] / "journal.jsonl").read_bytes()
    assert len(set(inodes)) == 1
    assert [int(size) for size in sizes] == [len(b"".join(whole.splitlines(True)[: n + 1])) for n in range(6)]
