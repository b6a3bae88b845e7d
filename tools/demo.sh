#!/usr/bin/env bash
# Serves the orders example with keys ready to use and prints what to try.
# DEMO_LISTEN and DEMO_DATA choose another address and data folder.
set -euo pipefail
cd "$(dirname "$0")/.."

app=plugins/examples/orders
listen=${DEMO_LISTEN:-127.0.0.1:8080}
data=$(realpath -m "${DEMO_DATA:-demo}")
runner=bin/runner

mkdir -p "$data"
"$runner" serve "$app" --data "$data" --listen "$listen" > "$data/ready" &
server=$!
# Ctrl-C reaches the server by itself: wait for it to end well.
stop() { wait "$server" || true; exit 0; }
trap stop INT
trap 'kill -TERM "$server"; stop' TERM
until grep -q '^listening on ' "$data/ready"; do
  kill -0 "$server" 2>/dev/null || { wait "$server"; exit 1; }
  read -rt 0.05 <> <(:) || true
done
url=$(sed -n 's/^listening on //p' "$data/ready")

key() { # scope, name
  local out
  out=$("$runner" api-keys create --app "$app" --data "$data" --scope "$1" --name "$2" --json) || { kill -TERM "$server"; wait "$server"; exit 1; }
  sed -n 's/^ *"token": "\(.*\)".*$/\1/p' <<< "$out"
}
partner=$(key partner_sync "demo partner")
admin=$(key orders_admin "demo administrator")

body='{"type":"payment.settled","order":"ord-1001"}'
signature=2c109ba5ef720d8662ef8edae951ef8fde922f3f68b3ef948f581da622e9b064 # HMAC-SHA-256 of body under the example's secret

cat <<TEXT
The orders example listens on $url

  a partner's key:        $partner
  an administrator's key: $admin

Try, in another terminal:

  curl $url/v1/orders -H 'Authorization: Bearer $partner'
  curl $url/v1/orders/ord-1002 -H 'X-API-Key: $partner'
  curl $url/v1/orders -H 'Authorization: Bearer $partner' -d '{"number":"A-1","lines":[{"item":"tea","quantity":2}]}'
  curl $url/v1/orders
  curl $url/v1/keys -H 'Authorization: Bearer $admin' -d '{"scope":"orders_read","name":"reporting"}'
  curl $url/v1/keys -H 'Authorization: Bearer $admin'
  curl $url/webhooks/payments -H 'X-Signature: sha256=$signature' -d '$body'

Ctrl-C ends it.
TEXT
wait "$server"
