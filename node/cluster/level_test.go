package cluster_test

import (
	"strings"
	"testing"

	"runner.example/internal/fault"
	"runner.example/internal/level"
	"runner.example/node/cluster"
)

func TestARaiseIsRefusedWithAllNodesThatPreventIt(t *testing.T) {
	newer := level.Range{Oldest: 1, Newest: 2}
	o := cluster.LevelOverview{Level: 1, Nodes: []cluster.NodeLevels{
		{Node: "n1", Version: "v1.5.0", Levels: newer},
		{Node: "n2", Version: "v1.4.0", Levels: level.Range{}.OrFirst()}, // it says nothing of levels
		{Node: "n3", Levels: newer, Error: "it cannot be reached"},
	}}
	if o.Target() != 2 {
		t.Errorf("the newest known level is %d", o.Target())
	}
	err := o.Refuse(2)
	want := "the level stays 1, because not all nodes know level 2: node n2 (runner v1.4.0) knows level 1: install a newer runner there; " +
		"node n3 does not answer: start it, or remove it with runner cluster leave n3"
	if fault.CodeOf(err) != fault.Conflict || fault.Of(err).Detail != want {
		t.Errorf("refused with %v", err)
	}
	o.Nodes = o.Nodes[:1]
	if err := o.Refuse(2); err != nil {
		t.Errorf("refused with %v", err)
	}
	if err := o.Refuse(3); err == nil || !strings.Contains(err.Error(), "node n1 (runner v1.5.0) knows levels 1 to 2: install a newer runner there") {
		t.Errorf("refused with %v", err)
	}
}
