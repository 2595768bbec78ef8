// Acme's wire: a prompt in, lines of JSON out. Pure: no I/O, no clock, nothing remembered between two answers.
import { chatOperation, type Protocol } from "tollgate/plugin";
import { client } from "./client.ts";
import { server } from "./server.ts";

/** Both halves: clients speak it to the gateway, and the gateway speaks it to providers. */
export const protocol = (): Protocol<"chat"> => ({
  id: "acme",
  operationSpec: chatOperation,
  client,
  server,
});
