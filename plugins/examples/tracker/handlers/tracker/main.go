// The handlers of the tracker app: one exported function for each name in
// tracker.schema. None of them checks tenants or roles: operations only find rows of the
// caller's organisation that the caller's role may read.
package main

import runner "runner.example/sdk/go"

func main() {}

//go:wasmexport listProjects
func exportListProjects() { runner.Handle(listProjects) }

//go:wasmexport createProject
func exportCreateProject() { runner.Handle(createProject) }

//go:wasmexport getProject
func exportGetProject() { runner.Handle(getProject) }

//go:wasmexport listProjectTasks
func exportListProjectTasks() { runner.Handle(listProjectTasks) }

//go:wasmexport listKeys
func exportListKeys() { runner.Handle(listKeys) }

//go:wasmexport createKey
func exportCreateKey() { runner.Handle(createKey) }

//go:wasmexport rotateKey
func exportRotateKey() { runner.Handle(rotateKey) }

//go:wasmexport revokeKey
func exportRevokeKey() { runner.Handle(revokeKey) }

//go:wasmexport setRole
func exportSetRole() { runner.Handle(setRole) }

//go:wasmexport removeMember
func exportRemoveMember() { runner.Handle(removeMember) }

//go:wasmexport listTasks
func exportListTasks() { runner.Handle(listTasks) }

//go:wasmexport getTask
func exportGetTask() { runner.Handle(getTask) }

//go:wasmexport createTask
func exportCreateTask() { runner.Handle(createTask) }

//go:wasmexport updateTask
func exportUpdateTask() { runner.Handle(updateTask) }

//go:wasmexport ingestEvent
func exportIngestEvent() { runner.Handle(ingestEvent) }

//go:wasmexport mailAssignee
func exportMailAssignee() { runner.Handle(mailAssignee) }

//go:wasmexport expireLinks
func exportExpireLinks() { runner.Handle(expireLinks) }

//go:wasmexport health
func exportHealth() { runner.Handle(health) }

//go:wasmexport signup
func exportSignup() { runner.Handle(signup) }

//go:wasmexport signinByPassword
func exportSigninByPassword() { runner.Handle(signinByPassword) }

//go:wasmexport setPassword
func exportSetPassword() { runner.Handle(setPassword) }

//go:wasmexport makeSignInLink
func exportMakeSignInLink() { runner.Handle(makeSignInLink) }

//go:wasmexport signin
func exportSignin() { runner.Handle(signin) }

//go:wasmexport signout
func exportSignout() { runner.Handle(signout) }
