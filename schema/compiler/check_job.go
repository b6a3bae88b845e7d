package compiler

import (
	"slices"

	"runner.example/internal/schedule"
	"runner.example/schema"
	"runner.example/schema/report"
	"runner.example/schema/syntax"
)

// jobChecker checks the jobs blocks and builds their part of the model.
type jobChecker struct {
	*app
	routes *routeChecker
}

const (
	maxRetries     = 100
	maxConcurrency = 1000
)

// checkJobs checks all jobs. A job and a function of one name would have the same handler.
func (c *jobChecker) checkJobs() {
	taken := seenNames{}
	for _, d := range c.decls {
		if block, ok := d.(*syntax.FunctionsDecl); ok {
			for _, f := range block.Functions {
				taken.add(f.Name)
			}
		}
	}
	for _, d := range c.decls {
		block, ok := d.(*syntax.JobsDecl)
		if !ok {
			continue
		}
		c.routes.settings.checkSettings(block.Settings, onJobs)
		for _, j := range block.Jobs {
			if first, twice := taken.add(j.Name); twice {
				c.Errorf("E510", j.Name.Loc, "%q is already declared at %s: the handler of a job has its name",
					j.Name.Name, report.At(j.Name.Loc, first))
			}
			c.checkJob(j, routeSettings{}.with(block.Settings))
		}
	}
}

func (c *jobChecker) checkJob(d *syntax.FunctionDecl, in routeSettings) {
	c.routes.settings.checkSettings(d.Settings, onJob)
	c.routes.fields.checkFields(d.Name.Name, d.Params)
	c.routes.fields.refuseFiles(d.Params)
	c.routes.checkHandlerName(d.Name)
	for i := range c.schema.Routes {
		if r := &c.schema.Routes[i]; r.Handler == d.Name.Name && r.Handler != "" {
			c.Errorf("E510", d.Name.Loc,
				"%q is the handler of %s %s: jobs have handlers of their own, which run beside requests",
				r.Handler, r.Method, r.Path)
			break
		}
	}
	set := in.with(d.Settings)
	j := schema.Job{
		Name: d.Name.Name, As: refOf(set.as), Retries: schema.DefaultRetries, Backoff: schema.DefaultBackoff,
		Doc: d.Doc, Span: d.Loc,
	}
	_, j.Timeout = boundsOf(set)
	if set.retries != nil && set.retries.Amount != nil {
		j.Retries = int(set.retries.Amount.Int)
	}
	if set.backoff != nil && set.backoff.Amount != nil {
		j.Backoff = set.backoff.Amount.Duration
	}
	if j.As != "" {
		c.usedScopes[j.As] = true
	}
	if set.concurrency != nil {
		j.Concurrency = c.checkConcurrency(d, set.concurrency.Concurrency)
	}
	if set.schedule != nil {
		j.Schedule = c.checkSchedule(d, set)
	}
	c.schema.Jobs = append(c.schema.Jobs, j)
}

// callerFields are what jobs can be counted by, beside their parameters.
var callerFields = []string{"tenant", "user"}

func (c *jobChecker) checkConcurrency(d *syntax.FunctionDecl, v *syntax.ConcurrencyValue) *schema.Concurrency {
	if v == nil {
		return nil
	}
	built := &schema.Concurrency{Max: int(v.Count.Int)}
	if v.Count.Int < 1 || v.Count.Int > maxConcurrency {
		c.Errorf("E511", v.Count.Loc, "concurrency %s is not between 1 and %d", v.Count.Raw, maxConcurrency)
	}
	if v.By == nil || v.By.Name == "" {
		return built
	}
	built.By = v.By.Name
	names := slices.Clone(callerFields)
	for _, p := range d.Params {
		names = append(names, p.Name.Name)
		if p.Name.Name != v.By.Name {
			continue
		}
		if slices.Contains(callerFields, p.Name.Name) {
			c.Errorf("E512", v.By.Loc,
				"concurrency by %s: it could mean the parameter or the %s of the caller: rename the parameter",
				v.By.Name, v.By.Name)
		} else if p.Type != nil && (p.Type.List || p.Type.Name.Name == "json" || c.isObject(p.Type.Name.Name)) {
			c.Errorf("E512", v.By.Loc, "concurrency by %s: a parameter of type %s has no single value to count by",
				v.By.Name, describeType(p.Type))
		}
		return built
	}
	if !slices.Contains(callerFields, v.By.Name) {
		c.Missing(v.By.Name, "E512", v.By.Loc, "concurrency by %s: write tenant, user or a parameter of %s%s",
			v.By.Name, d.Name.Name, c.DidYouMean(v.By.Name, names))
	}
	return built
}

func (c *jobChecker) isObject(name string) bool {
	_, is := c.named[name].(*syntax.TypeDecl)
	return is
}

func (c *jobChecker) checkSchedule(d *syntax.FunctionDecl, set routeSettings) *schema.Schedule {
	v := set.schedule.Schedule
	if v == nil {
		return nil
	}
	zone := "UTC"
	built := &schema.Schedule{Cron: v.Cron.Text, Zone: zone}
	if v.Zone != nil {
		named, err := schedule.Zone(v.Zone.Text)
		if err != nil && v.Zone.Var != "" {
			built.Zone = v.Zone.Text // the name of the variable, if it has no value here
			c.Errorf("E514", v.Zone.Loc,
				"%s is not a time zone: write a name of the IANA database such as \"Europe/Berlin\"", v.Zone.Shown())
		} else if err != nil {
			c.Errorf("E514", v.Zone.Loc, "%v: write a name of the IANA database such as \"Europe/Berlin\"%s",
				err, c.DidYouMean(v.Zone.Text, schedule.Zones()))
		} else {
			zone, built.Zone = named, named
		}
	}
	if _, err := schedule.Parse(built.Cron, zone); err != nil && v.Cron.Var != "" {
		c.Errorf("E513", v.Cron.Loc,
			"schedule: %s is not a cron expression that fires: write one such as \"0 3 * * *\"", v.Cron.Shown())
	} else if err != nil {
		c.Errorf("E513", v.Cron.Loc, "schedule: %v", err)
	}
	if set.as == nil {
		c.Errorf("E515", set.schedule.Name.Loc, "a schedule has no caller: add `as: <scope>`, whose grants the job has")
	} else if scope := c.scopes[refOf(set.as)]; scope != nil && c.needsTenant(scope) {
		c.Warnf("W516", set.as.Ref.Loc,
			"scope %q reaches rows of the caller's tenant alone, and a schedule has none: add @allTenants to the scope",
			scope.Name.Name)
	}
	for _, p := range d.Params {
		if p.Type != nil && !p.Type.Optional && !p.Omits && p.Default == nil {
			c.Errorf("E515", p.Loc, "a schedule gives no parameters: make %q optional (%s?), or give it a default",
				p.Name.Name, describeType(p.Type))
		}
	}
	return built
}

// needsTenant reports whether all grants of a scope are on rows that belong to tenants.
func (c *jobChecker) needsTenant(scope *syntax.ScopeDecl) bool {
	if len(scope.AllTenants) > 0 || len(scope.Grants) == 0 {
		return false
	}
	for _, g := range scope.Grants {
		for _, name := range g.Entities {
			if e := c.entity(name.Name); e == nil || e.tenant == nil {
				return false
			}
		}
	}
	return true
}
