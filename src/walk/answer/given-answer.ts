// An answer of a hook's own making, in the protocol and the form that the client asked for.
import { unfold } from "../../model/unfold.ts";
import type { Usage } from "../../model/usage.ts";
import type { GivenAnswer } from "../../plugin/call.ts";
import type { HostCall } from "../call.ts";
import type { ClientAnswer } from "./client-answer.ts";
import { answering } from "./answer-context.ts";

/** What its codec writes of it, before any of it leaves: a block that an answer cannot have is the hook's mistake. */
export function written(call: HostCall, { answer }: GivenAnswer, usage: Usage): Buffer | string {
  const x = call.exchange;
  const server = x["~"].frontend.server!;
  const to = answering(call);
  const whole = { ...answer, id: x.id, usage };
  if (!x.stream) {
    const said = server.whole(whole, to);
    return Buffer.isBuffer(said) ? said : JSON.stringify(said);
  }
  const parts: Buffer[] = [];
  const encoder = server.stream((part) => parts.push(Buffer.from(part)), to);
  for (const event of unfold(whole)) encoder.event(event);
  return Buffer.concat(parts);
}

/** All of it, at once. */
export function give(answer: ClientAnswer, body: Buffer | string): void {
  answer.write(body);
  answer.commit();
  answer.end();
}
