package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/node/cluster"
)

// healthy is a cluster of three voters and an edge node, as n1 sees it a second after the wait has begun.
func healthy() *cluster.Overview {
	s := &cluster.Overview{Node: "n1", Quorum: true, Voters: 3, Voting: 3, MayFail: 1}
	for _, name := range []string{"n1", "n2", "n3", "n4"} {
		node := cluster.NodeStatus{Connected: true, Seen: 100}
		node.Name, node.Role, node.Staleness = name, cluster.Voter, 300
		s.Nodes = append(s.Nodes, node)
	}
	s.Nodes[0].Seen, s.Nodes[3].Role = 0, cluster.Edge
	return s
}

func TestAStepIsSafeWhenTheNodeTakesPartAndAnotherOneMayFail(t *testing.T) {
	for name, try := range map[string]struct {
		node   string
		change func(*cluster.Overview)
		why    string
	}{
		"all are well":                    {"n3", func(*cluster.Overview) {}, ""},
		"the node that is asked":          {"n1", func(*cluster.Overview) {}, ""},
		"an edge node":                    {"n4", func(*cluster.Overview) {}, ""},
		"it does not answer":              {"n3", func(s *cluster.Overview) { s.Nodes[2].Connected = false }, "n3 does not answer n1"},
		"the last question has no answer": {"n3", func(s *cluster.Overview) { s.Nodes[2].Error = "refused" }, "n3 does not answer n1"},
		"what is known is from before":    {"n3", func(s *cluster.Overview) { s.Nodes[2].Seen = 1000 }, "n1 asks n3"},
		"it never answered":               {"n3", func(s *cluster.Overview) { s.Nodes[2].Connected, s.Nodes[2].Seen = false, -1 }, "n3 does not answer"},
		"it is not ready":                 {"n3", func(s *cluster.Overview) { s.Nodes[2].NotReady = "it drains" }, "n3 is not ready: it drains"},
		"no release is active":            {"n3", func(s *cluster.Overview) { s.Nodes[2].NotReady, s.Nodes[2].NoRelease = "no release", true }, ""},
		"it lacks the release of others": {"n3", func(s *cluster.Overview) {
			s.Nodes[0].Release, s.Nodes[2].NotReady, s.Nodes[2].NoRelease = "rel_1", "no release", true
		}, "n3 is not ready: no release"},
		"it joins":                         {"n3", func(s *cluster.Overview) { s.Nodes[2].Joining = true }, "n3 has no vote yet"},
		"it leaves":                        {"n3", func(s *cluster.Overview) { s.Nodes[2].Leaving = true }, "n3 is leaving"},
		"it lacks commits":                 {"n3", func(s *cluster.Overview) { s.Nodes[2].Staleness = 6000 }, "does not have all commits"},
		"it does not know what it lacks":   {"n3", func(s *cluster.Overview) { s.Nodes[2].Staleness = -1 }, "does not have all commits"},
		"no majority":                      {"n3", func(s *cluster.Overview) { s.Quorum, s.MayFail = false, 0 }, "no majority"},
		"another voter does not take part": {"n3", func(s *cluster.Overview) { s.Nodes[1].NotVoting = "no log"; s.Voting, s.MayFail = 2, 0 }, "2 of 3 take part, without n2"},
		"another voter was not asked yet":  {"n3", func(s *cluster.Overview) { s.Nodes[1].Seen = 1000 }, "n1 asks n2"},
		"an edge node was not asked yet":   {"n3", func(s *cluster.Overview) { s.Nodes[3].Seen = 1000 }, ""},
		"two voters":                       {"n2", func(s *cluster.Overview) { s.Nodes = s.Nodes[:2]; s.Voters, s.Voting, s.MayFail = 2, 2, 0 }, ""},
		"etcd runs elsewhere":              {"n2", func(s *cluster.Overview) { s.Voters, s.Voting, s.MayFail = 0, 0, -1 }, ""},
		"it is only a member of etcd":      {"n3", func(s *cluster.Overview) { s.Nodes[2].Unlisted = true }, "runner cluster leave n3"},
	} {
		s := healthy()
		try.change(s)
		why, err := s.NotSafe(try.node, time.Second)
		if err != nil || (why == "") != (try.why == "") || !strings.Contains(why, try.why) {
			t.Errorf("%s: %q, %v; want %q", name, why, err, try.why)
		}
	}
	if _, err := healthy().NotSafe("n9", time.Second); fault.CodeOf(err) != fault.NotFound || !strings.Contains(fmt.Sprint(err), "n9") {
		t.Errorf("a node that is not there: %v", err)
	}
}
