from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kamino.model.marginal.graph.junction import Graph, build_tree, eliminate


@st.composite
def graphs(draw):
    d = draw(st.integers(1, 7))
    clique = st.lists(st.integers(0, d - 1), min_size=1, max_size=3, unique=True).map(tuple)
    cliques = draw(st.lists(clique, max_size=8))
    sequence = draw(st.one_of(st.none(), st.permutations(range(d))))
    return d, cliques, sequence


@given(graphs())
def test_tree_covers_the_given_cliques(graph):
    d, cliques, sequence = graph
    tree = build_tree([2] * d, cliques, sequence)
    assert all(tree.home(clique) is not None for clique in cliques)
    assert all(tree.home((a,)) is not None for a in range(d))


@given(graphs())
def test_tree_has_the_running_intersection_property(graph):
    d, cliques, sequence = graph
    tree = build_tree([2] * d, cliques, sequence)
    assert all(parent < i for i, parent in enumerate(tree.parent))
    for a in range(d):
        holding = {i for i, clique in enumerate(tree.cliques) if a in clique}
        # Connected in a tree: exactly one of them has its parent outside.
        assert sum(tree.parent[i] not in holding for i in holding) == 1


@given(graphs())
def test_cliques_are_maximal(graph):
    d, cliques, sequence = graph
    sets = [set(c) for c in build_tree([2] * d, cliques, sequence).cliques]
    assert not any(i != j and a <= b for i, a in enumerate(sets) for j, b in enumerate(sets))


@given(graphs())
def test_parents_come_earlier_and_share_a_clique(graph):
    d, cliques, sequence = graph
    tree = build_tree([2] * d, cliques, sequence)
    if sequence is not None:
        assert tree.sequence == tuple(sequence)
    for a in range(d):
        assert all(tree.sequence.index(p) < tree.sequence.index(a) for p in tree.parents[a])
        assert tree.home((a, *tree.parents[a])) is not None


def test_cells_are_those_of_the_maximal_cliques():
    tree = build_tree([2, 3, 5], [(0, 1), (1, 2)], [0, 1, 2])
    assert tree.cells == 2 * 3 + 3 * 5


@given(graphs(), st.data())
def test_cells_are_counted_without_the_tree(graph, data):
    d, cliques, sequence = graph
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=d, max_size=d))
    new = data.draw(st.lists(st.integers(0, d - 1), max_size=3, unique=True).map(tuple))
    after = {} if sequence is not None or d < 3 else {2: 0}
    tree = build_tree(sizes, [*cliques, *([new] if new else [])], sequence, after)
    graph = Graph(sizes, cliques, sequence, after)
    assert graph.cells_with(new) == graph.cells_with(new) == tree.cells
    assert graph.cells_with() == build_tree(sizes, cliques, sequence, after).cells
    graph.add(new)
    assert graph.cells_with() == tree.cells


@given(graphs(), st.data())
def test_what_comes_after_another_is_eliminated_before_it(graph, data):
    """However many wait for the same one, and whatever the sizes say."""
    d, cliques, _ = graph
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=d, max_size=d))
    after = {a: 0 for a in range(1, d) if data.draw(st.booleans())}
    sequence, _ = eliminate(sizes, cliques, None, after)
    assert sorted(sequence) == list(range(d))
    assert all(sequence.index(later) > sequence.index(earlier) for later, earlier in after.items())
