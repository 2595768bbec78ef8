// Acme's protocol: accepts a prompt, returns lines of JSON. It is pure: no I/O, no clock, no state between responses.
import { chatOperation, type Protocol } from "tollgate/plugin";
import { client } from "./client.ts";
import { server } from "./server.ts";

/** Has both halves: clients use it to call the gateway, and the gateway uses it to call providers. */
export const protocol = (): Protocol<"chat"> => ({
  id: "acme",
  operationSpec: chatOperation,
  client,
  server,
});
