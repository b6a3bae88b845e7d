package harness

const HostileSchema = `
routes("/", auth: none, rateLimit: none, timeout: 60s) {
  GET /hello -> hello
  GET /clean -> clean
  GET /loop -> loop (timeout: 300ms)
  GET /loopAfterAnswer -> loopAfterAnswer (timeout: 300ms)
  GET /loopInCalls -> loopInCalls (timeout: 300ms)
  GET /recurse -> recurse
  GET /trap -> trap
  GET /trapAfterAnswer -> trapAfterAnswer
  GET /divide -> divide
  GET /nothing -> nothing
  GET /exit0 -> exit0
  GET /exit1 -> exit1
  GET /exitAfterAnswer -> exitAfterAnswer
  GET /grow -> grow
  GET /growAndAnswer -> growAndAnswer
  GET /outOfBounds -> outOfBounds
  GET /pointers -> pointers
  GET /flood -> flood
  GET /calls -> calls
  POST /say -> say
}
`

const OutboundSchema = `
app outbound
outbound { allow: ["%s"] }
entity Counter { id: id  n: int = 0 }
apiKeys { scopes: { worker: @system("worker") { @grant read, write on Counter } } }
routes("/", auth: apiKey(worker), rateLimit: none, timeout: 60s) {
  POST /one -> fetchOne
  POST /all -> fetchAll
  POST /busy -> busyFetch
  POST /counted -> countedFetch
  POST /bump -> bump
}
`

// ProbeSchema has a route of every kind that needs no entity and no session.
const ProbeSchema = `
app probe
apiKeys {
  scopes: {
    reader: @system("probe.reader") { @grant read on Thing },
    writer: @system("probe.writer") { @grant read, write on Thing },
    other: @system("probe.other") { @grant read on Thing }
  }
}
routes("/", auth: none, rateLimit: none) {
  GET /hello -> hello
  GET /dump -> dump
  POST /dump -> dump
  PUT /dump -> dump
  GET /empty -> empty
  GET /missing -> missing
  GET /unauthorized -> unauthorized
  GET /slash/ -> dump
  GET /a/b/d -> dump
  GET /a/:x/c -> dump
  GET /files/*rest -> dump
  GET /files/static -> hello
  POST /small -> dump (body: 16b)
  HEAD /own -> empty
  GET /own -> dump
  OPTIONS /options -> hello
  GET /options -> hello
  GET /header -> setHeader
  GET /redirect -> redirect
}
routes("/v1", auth: apiKey(reader, writer)) {
  GET /dump -> dump
  POST /dump -> dump (auth: apiKey(writer), body: 16b, rateLimit: 1000/minute)
  GET /limited -> hello (rateLimit: 3/minute)
  POST /limitedBody -> hello (rateLimit: 1/minute, body: 16b)
  GET /session -> hello (auth: session)
}
`

// PortalSchema is an app whose users have sessions and whose machines have API keys.
const PortalSchema = `
app portal
auth {
  session cookie { }
  roles: [admin, staff]
  origins: ["https://trusted.example"]
}
apiKeys {
  scopes: {
    reader: @system("reader") { @grant read on Thing },
    minted: @system("minted") {
      @grant read on Thing
      @issue when auth.role == "admin"
    }
  }
}
routes("/v1", auth: session, rateLimit: none) {
  GET /dump -> dump
  POST /dump -> dump
  PUT /dump -> dump
  DELETE /dump -> dump
  POST /loose -> dump (csrf: off)
  GET /admin -> dump (auth: session(admin))
  POST /any -> dump (auth: anyOf(session(admin), apiKey(reader)))
  GET /key -> dump (auth: apiKey(reader))
  GET /open -> dump (auth: none)
  GET /public -> dump (auth: none, as: reader)
  GET /page -> dump (auth: anyOf(session, none), as: reader)
  POST /page -> dump (auth: anyOf(session, apiKey(reader), none))
  POST /op -> op
  GET /limited -> hello (rateLimit: 3/minute)
  GET /limitedUser -> hello (rateLimit: 3/minute by user)
  PUT /limited -> hello (rateLimit: 1/minute)
}
`

const TinySchema = "routes(\"/\", auth: none, rateLimit: none) { GET /hello -> hello }\n"
