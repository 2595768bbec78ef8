// The verbatim lane: the host's bytes, with the name that the client knows the model by.
import type { Fault } from "../../../model/error.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import { text } from "../../json.ts";
import { fault } from "../../responses/server/fault.ts";
import { named } from "../../sse/index.ts";
import { usageOf, verdictsIn } from "./whole.ts";

export const relay = (sink: RelaySink, to: AnswerContext): Relay => ({
  between: true,
  push(body) {
    const { answer } = verdictsIn(body);
    const id = text(answer["id"]);
    if (id !== undefined) sink.start(id);
    sink.usage({ type: "usage", usage: usageOf(answer) });
    sink.content();
    sink.finish("stop");
    named(body, to.model, (b) => sink.bytes(b));
  },
  end() {},
  fail(f: Fault) {
    sink.bytes(Buffer.from(JSON.stringify(fault(f, to).body)));
  },
});
