package process

const forServers = true
