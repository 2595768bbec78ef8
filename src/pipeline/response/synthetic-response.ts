// An answer of a hook's own making, in the protocol and the form that the client asked for.
import { responseToEvents } from "../../model/response-events.ts";
import type { Usage } from "../../model/usage.ts";
import type { SyntheticResponse } from "../../plugin/call.ts";
import type { HostCall } from "../exchange/call.ts";
import type { ClientResponse } from "./client-response.ts";
import { createResponseContext } from "./response-context.ts";

/** What its codec writes of it, before any of it leaves: a block that an answer cannot have is the hook's mistake. */
export function encodeSyntheticResponse(
  call: HostCall,
  { response }: SyntheticResponse,
  usage: Usage,
): Buffer | string {
  const x = call.exchange;
  const server = x["~"].frontend.server!;
  const context = createResponseContext(call);
  const whole = { ...response, id: x.id, usage };
  if (!x.stream) {
    const said = server.encodeResponse(whole, context);
    return Buffer.isBuffer(said) ? said : JSON.stringify(said);
  }
  const parts: Buffer[] = [];
  const encoder = server.createEncoder((part) => parts.push(Buffer.from(part)), context);
  for (const event of responseToEvents(whole)) encoder.writeEvent(event);
  return Buffer.concat(parts);
}

/** All of it, at once. */
export function sendWholeResponse(response: ClientResponse, body: Buffer | string): void {
  response.write(body);
  response.commit();
  response.end();
}
