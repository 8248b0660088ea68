package nodes

// Rounds arranges n players so that each meets each other one once: n-1 rounds of n/2 pairs, or n rounds where n is odd and one
// sits out each time. The first player stays, and the others move on around a circle.
func Rounds(n int) [][][2]int {
	even := n + n%2
	var rounds [][][2]int
	for r := range even - 1 {
		var pairs [][2]int
		for i := range even / 2 {
			a, b := seat(even, r, i), seat(even, r, even-1-i)
			if a < n && b < n {
				pairs = append(pairs, [2]int{min(a, b), max(a, b)})
			}
		}
		rounds = append(rounds, pairs)
	}
	return rounds
}

// seat is who sits at a place of the circle in a round.
func seat(n, round, at int) int {
	if at == 0 {
		return 0
	}
	return 1 + (at-1+round)%(n-1)
}
