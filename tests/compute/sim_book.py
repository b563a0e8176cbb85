"""What customers asked of compute and what they were told, and what was done to instances behind its back."""

from tests.region.sim_book import RegionBook


class ComputeBook(RegionBook):
    """All of it. An instance goes with its network, and that with its project."""

    def __init__(self) -> None:
        super().__init__()
        self.undercut: set[str] = set()
        """Instances whose server somebody removed at region, by id: the next one has another port."""
