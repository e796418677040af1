"""What was tuned, in one place, with the measurement or the reason beside it.

What follows from float64 alone stays with the formula that needs it; ``docs/engines.md`` ends with
what was tried and dropped.
"""

from dataclasses import dataclass

from optmech.engines.base import ITERATED_FROM, ITERATED_SHARE


@dataclass(frozen=True)
class Tuning:
    """Grids are of unit cells; seconds are processor time."""

    # which pairs and rows are held
    stretch: float = 1.2
    """A pair is short when no path of two shorter pairs comes within this factor of it. On square
    grids these are the eight neighbours; more pairs mean more work in every iteration, and not
    fewer iterations."""
    most_neighbours: int = 24
    """Short pairs of a variable; programs of up to so many variables hold all their pairs."""
    nearly_violated: float = 0.9
    """Long pairs join from this share of their limit on, in every iteration: those that enter
    violated shorten the steps and spoil the bounds. At 22 × 22 cells (Hamming) that, and correctors
    that aim at full steps, took a gap of 1 % from 92 s to 35; joining at 0.35 does not help."""
    nearly_violated_late: tuple[float, float] = (1e-2, 0.97)
    """Below this gap, from this share on: columns hardly change any more, and fewer pairs make
    iterations cheaper by a tenth. At 0.99 below 1e-3 there are a tenth more of them. Not beside
    other rows, where repair loses by pairs that are violated."""
    dense_whole: int = 16
    """Groups of up to so many dense rows are held whole."""
    dense_at_first: int = 4
    """Rows of larger groups at first, the cheapest estimate's and the nearest; at the end there are
    5 to 11."""
    dense_at_a_time: int = 2
    dense_near: float = 0.02
    """A dense row joins when its slack is below this share of its negative side."""

    # steps
    back: float = 0.93
    """Share of the way to the boundary that a step goes: more or less far does not help."""
    back_nearly_full: float = 0.99
    """Share of the way where the whole step is almost possible."""
    correctors_in_vain: int = 1
    """Correctors in a row that may fail to lengthen the steps before another one: 34 iterations
    instead of 39 (Hamming), 29 instead of 27 (Euclidean) at 16 × 16 cells; at 22 × 22 fewer with
    both."""
    most_iterations: int = 600
    """Worst-case loss, the slowest kind, takes some 160."""
    stalled: int = 12
    """Iterations in a row with steps below 1e-3 after which more do harm only."""

    # the row sums' equations where programs are large
    iterated_from: int = ITERATED_FROM
    """Variables from which on they are solved by conjugate gradients: at 1,000 crossings of Rome
    the whole matrix costs 0.6 s an iteration, a part 0.45 and the gradients 0.4; at 2,000 the part
    costs 2.4 and the gradients 2."""
    iterated_share: float = ITERATED_SHARE
    """Blocks to a variable up to which they are: with as many of both the factors take most of
    the time, and columns leave instead."""
    likeliest: int = 20
    """Blocks of every variable whose inverses make the preconditioner. Of Rome's 100 reports, 10
    need 10 to 25 gradients an iteration, 20 need 4 to 7, and a fifth of the time of all."""
    likely_enough: float = 3e-3
    """Share of the likeliest's probability from which on these count: inverses go with its square,
    and what they take with the square of how many places each block has."""
    iterated_to: float = 1e-4
    """What residuals fall to at least: only row sums are off by it, until the next iteration ..."""
    iterated_least: float = 1e-10
    """... and no further, however small the gap."""
    iterated_correctors: tuple[int, float] = (4, 0.03)
    """Most correctors there, and the gain that another one needs: a solve takes several."""
    lasting: int = 12
    """Gradients up to which a preconditioner is kept for the next iteration, updated by directions
    that are known: one of them takes a hundredth of what a new one takes."""
    most_iterated: int = 30
    """Gradients after which a preconditioner is given up: for a new part of the matrix, and then
    for the whole."""

    field_from: int = 4_000
    """Variables from which on there is a field of the pairs that all blocks begin with: at 2,000 a
    part of the matrix takes no longer than the gradients that it saves."""
    most_by_field: float = 0.012
    """Gradients for each variable after which the field of the first pairs is given up: the next
    better one takes as long as 200 gradients at 5,000 crossings of Rome."""

    direction_entries: int = 1 << 24
    """Entries of the directions that are kept of an iterate's gradients, and of their images ..."""
    least_directions: int = 64
    """... and how many are kept however long they are."""
    lasting_edges: int = 12
    """Gradients up to which one is kept over edges, where a product takes less."""
    iterated_to_edges: float = 1e-3
    """What residuals fall to at least there: with 1e-4 5,000 crossings of Rome take a tenth more to
    3 %, and the last gradients are two fifths more."""
    rough: float = 1e-4
    """Residuals from which on products may be by factors of half the digits."""
    most_at_last: int = 150
    """Gradients after which the last preconditioner, the best there is, is given up."""

    # bounds
    quick: int = 2_000_000
    """Blocks times variables squared up to which an iteration takes milliseconds: bounds on the
    way are then of use to nobody, and each takes almost as long as an iteration."""
    fallen: float = 0.03
    """Bounds are due when the gap has fallen to this share: they cost an iteration or two ..."""
    closed: float = 0.95
    """... and once it is below this share of what is asked for, as those a hair above end
    nothing ..."""
    nearly_closed: float = 2.0
    """... nor do those below so many times it, as a few more iterations get there."""
    far: float = 0.3
    far_large: float = 0.5
    """Gap from which on large programs have none: at 5,000 crossings of Rome they take as long as
    two iterations."""
    rough_bounds: float = 30.0
    """So many times the gap asked for, large programs take the columns' majorants as they are: to
    bring their row sums nearer takes ten times as long (at 1,000 crossings of Rome, a gap of 40 %:
    a loss of .338 instead of .313)."""
    fallen_quick: float = 0.01
    bounds_at_latest: int = 10
    """Iterations between two bounds ..."""
    rarely: int = 4
    """... and so many times as many of large programs near their end, where each takes as long as
    five iterations: two on the way were 86 of 536 processor seconds of 5,000 crossings of Rome."""
    worthless: int = 3
    """Before so many iterations the bounds are far from anything."""
    projections: int = 2
    most_projections: int = 20
    """At 26 × 26 cells, ε = 0.615, two lost 0.0017 of a bound of 0.831 in iteration 23, twenty
    0.0006 ..."""
    bearable: float = 0.01
    """... so more follow while negative reduced costs would cost this share of the gap."""
    sweeps: int = 60
    """Of draining, which ends before where nothing is negative any more."""
    most_majorants: int = 4

    # columns left out and priced
    left_out_projections: int = 20
    """Cheap beside the pricing, and they halve what the bound loses."""
    priced_from: float = 0.1
    """Gap of the program of the columns held from which on the others are priced."""
    looked: float = 0.3
    """They are looked at, between bounds, when the gap has fallen to this share."""
    left_out_matters: float = 0.3
    """Leaving columns out fails where it costs the bound this share of the gap."""
    left_out_goal: float = 0.02
    """Share of the gap asked for that multipliers of all columns left out may cost together."""

    # columns that leave while a run goes on
    watched: float = 3.0
    """Times that products have fallen while the sums of columns are compared."""
    falls: float = 0.35
    """Slope of log sum against log mu from which on a column is taken to end unused: at 300 cells
    (Hamming, 19 used) and 256 (Euclidean, 94 used) that never met one in use while the gap was
    above 4 %, and left 37 and 135 at 6 %; at 484 (Euclidean, 174 used) 211 at 2.6 % ..."""
    falls_late: float = 0.45
    narrowed_late: float = 0.04
    """... later, those in use change as well: at 0.35 one of 32 left that was in use at a gap of
    4e-4 (300 cells, Euclidean), and one of 77 at 6e-4 (Montréal), at 0.5 none."""
    falling: float = 0.2
    """Median slope from which on the first columns may leave all at once: those unused under
    Hamming loss fall alike, those in use ..."""
    slower: float = 0.95
    """... slower than this share of it: 220 and 242 of 1,024 cells (114 and 184 used), 121 of 484
    (48 used) ..."""
    margin: float = 1.2
    """... and a fifth as many more: of the 242 five were missing at a gap of 1e-3."""
    alike: float = 0.35
    """Without these they do where no larger share remains: under Euclidean loss slopes are spread
    out, and of 400 cells 58 of the 193 that were left at a gap of 10 % were missing later."""
    narrowed_from: float = 0.6
    narrowed_to: float = 1e-5
    """Gaps between which columns may leave."""
    narrowed: float = 0.8
    """They do where no larger share remains: what leaving costs is less than an iteration, as those
    that left are hardly ever priced anew."""
    joining: float = 0.02
    """Share of an even one with which columns that are missing come back ..."""
    most_room: float = 0.05
    """... and most that all others are scaled down by for it."""
    too_late: float = 12.0
    """Where those missing cost more than so many gaps, the run goes back instead: of three that
    were thrown out of 64, at 10 and 4 gaps joining took 27 and 26 iterations and going back 36 and
    30, at 16 gaps 32 and 30."""
    most_widened: int = 8
    """Times that columns may be missing before the run goes on with all of them."""

    # warm start
    furthest: float = 1.2
    """Log ratios that changed by a larger factor make a neighbour that saves nothing."""
    used: float = 1e-4
    """Columns with a larger sum are in use."""
    absent: float = 1e-9
    """Columns with a smaller sum were left out by the neighbour as well."""
    neighbours_gap: float = 1e-6
    """What a neighbour is certified to, and its barrier with it."""
    others: float = 0.45
    """Share of the columns not in use that are held as well: each costs a little in every
    iteration, and one that is missing costs a run."""
    tight: float = 0.1
    """Long pairs with less slack than this share of their smaller side are held from the start;
    every pair that the neighbour held means fewer iterations, but each costs more."""
    first_gap: float = 0.3
    """Relative gap that the first iterate's products make."""
    spread: float = 10.0
    """How far above the mean a product may be."""
    least_uniform: float = 0.01
    """Share of the uniform mechanism that is mixed in: without it, 60 to 140 iterations ..."""
    uniform_per_square: float = 15.0
    """... growing with the square of the change of the ratios ..."""
    most_uniform: float = 0.2
    """... up to this."""
    lost: int = 60
    """Iterations after which the start did harm: where that was counted, the usual one took 29."""


TUNING = Tuning()
