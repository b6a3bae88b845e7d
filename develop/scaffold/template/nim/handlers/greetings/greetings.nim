# The handlers of the app: one for each name in the schema.
import std/json
import runner

handler hello:
  let name = param("name")
  if name == "nobody":
    refuse(400, "there is nobody to greet")
  else:
    answer(200, %*{"name": name, "text": "hello " & name})

# The newest greetings, of all or of ?name=.
handler listGreetings:
  var wanted = %*{"from": "Greeting", "select": ["name", "text"], "orderBy": [["placedAt", "desc"]], "limit": 20}
  if query("name") != "": wanted["where"] = %*[["name", "=", query("name")]]
  answer(200, operation("query", wanted)["rows"])

# Stores a greeting. The runner has checked that the body matches GreetingInput.
handler createGreeting:
  let row = operation("insert", %*{"into": "Greeting", "values": body()})["rows"][0]
  log("greeting placed")
  answer(201, row)
