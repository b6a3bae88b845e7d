#!/usr/bin/env bash
# Serves the orders example, creates keys, and prints commands to try. DEMO_LISTEN and
# DEMO_DATA choose another address and data directory.
set -euo pipefail
cd "$(dirname "$0")/.."

app=plugins/examples/orders
listen=${DEMO_LISTEN:-127.0.0.1:8080}
data=$(realpath -m "${DEMO_DATA:-demo}")
runner=bin/runner

mkdir -p "$data"
"$runner" serve "$app" --data "$data" --listen "$listen" > "$data/ready" &
server=$!
# Ctrl-C reaches the server too: wait until it has stopped.
stop() { wait "$server" || true; exit 0; }
trap stop INT
trap 'kill -TERM "$server"; stop' TERM
until grep -q '^listening on ' "$data/ready"; do
  kill -0 "$server" 2>/dev/null || { wait "$server"; exit 1; }
  read -rt 0.05 <> <(:) || true
done
url=$(sed -n 's/^listening on //p' "$data/ready")

give_up() { kill -TERM "$server"; wait "$server"; exit 1; }
on_app() { "$runner" "$@" --app "$app" --data "$data"; }
member() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p"; } # of JSON on stdin
key() { # scope, name
  local out
  out=$(on_app api-keys create --scope "$1" --name "$2" --json) || give_up
  member token <<< "$out"
}
reader=$(key orders_read "demo reports")
partner=$(key partner_sync "demo partner")
ops=$(key ops_admin "demo tools")
cookie=$(on_app sessions create --user ada --role admin --json | member cookie) || give_up

# A first partner and order, unless an earlier demo created them.
curl -fs -o /dev/null "$url/v1/partners/acme" -H "X-API-Key: $ops" ||
  curl -fs -o /dev/null "$url/v1/partners" -H "X-API-Key: $ops" -d '{"code":"acme","name":"Acme"}' || give_up
acme=$(curl -fs "$url/v1/partners/acme" -H "X-API-Key: $ops" | member id)
curl -s -o /dev/null "$url/v1/orders" -H "X-API-Key: $partner" -d "{\"number\":\"A-1001\",\"partner\":\"$acme\",\"total\":\"54.00\"}"

number=A-$((2000 + RANDOM))$RANDOM
event='{"type":"payment.settled","order":"A-1001","ref":"pay_1"}'
signature=c673e9396554e6030f24ea0f65421ce691d9f0084dd61b1be2319aeca454cb38 # HMAC-SHA-256 of event under the example's secret

cat <<TEXT
The orders example listens on $url

  keys:     $reader   for reports: reads orders
            $partner   for a partner: creates orders
            $ops   for internal tools
  session:  $cookie

Try, in another terminal:

  curl $url/v1/orders -H 'Authorization: Bearer $reader'
  curl $url/v1/orders -H 'X-API-Key: $partner' -d '{"number":"$number","partner":"$acme","total":"12.50"}'
  curl $url/v1/orders -H 'X-API-Key: $partner' -d '{"number":"$number","partner":"$acme","total":"12.50"}'
  curl $url/v1/orders -H 'X-API-Key: $partner' -d '{"number":"","total":"free"}'
  curl $url/v1/orders -H 'X-API-Key: $reader' -d '{"number":"A-1","partner":"$acme","total":"1.00"}'
  curl $url/v1/orders
  curl $url/hooks/payments -H 'X-Signature: sha256=$signature' -d '$event'
  curl '$url/v1/orders?status=paid' -H 'X-API-Key: $reader'
  curl $url/v1/partners/acme -H 'Cookie: $cookie'
  curl $url/_call/createPartnerKey -H 'Cookie: $cookie' -d '{"scope":"orders_read","name":"reporting"}'

Ctrl-C stops it.
TEXT
wait "$server"
