// Sends a response that a hook made, in the protocol and form that the client requested.
import { responseToEvents } from "../../model/response-events.ts";
import type { Usage } from "../../model/usage.ts";
import type { SyntheticResponse } from "../../plugin/call.ts";
import type { HostCall } from "../exchange/call.ts";
import type { ClientResponse } from "./client-response.ts";
import { createResponseContext } from "./response-context.ts";

/**
 * Encodes a hook's response before any of it is sent. A block that a response cannot contain is an
 * error of the hook.
 */
export function encodeSyntheticResponse(
  call: HostCall,
  { response }: SyntheticResponse,
  usage: Usage,
): Buffer | string {
  const x = call.exchange;
  const server = x.state.frontend.server!;
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

/** Sends a complete response in one piece. */
export function sendWholeResponse(response: ClientResponse, body: Buffer | string): void {
  response.write(body);
  response.commit();
  response.end();
}
