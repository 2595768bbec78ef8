// The verbatim lane of an answer that is one JSON text.
import { isAscii } from "node:buffer";
import { fail, type Fault } from "../../../model/error.ts";
import type {
  AnswerContext,
  CallContext,
  FinishReason,
  JsonObject,
  Relay,
  RelaySink,
} from "../../../plugin/index.ts";
import { gather, renaming } from "../../sse/index.ts";
import type { ChatDialect } from "../dialect.ts";
import { finishOf } from "../finish.ts";
import { faultBody } from "../server/fault.ts";
import { stream as encoder } from "../server/stream.ts";
import { usageSeen, usageTo } from "../usage.ts";
import { list, object, text } from "../../json.ts";
import { wordsIn } from "./amount.ts";
import { recounted, retold } from "./counts.ts";
import { isError, parsed, throwFault } from "./fault.ts";
import { whole } from "./whole.ts";

export function relayWhole(sink: RelaySink, to: AnswerContext, dialect: ChatDialect): Relay {
  return {
    between: false,
    push(body) {
      const answer = parsed(isAscii(body) ? body.toString("latin1") : body.toString("utf8"));
      if (isError(answer)) throwFault(answer);
      const reason = endOf(answer);
      sink.start(text(answer["id"]) ?? "");
      const usage = usageSeen(answer, dialect);
      if (usage) sink.usage(usage);
      let words = 0;
      for (const choice of list(answer["choices"]))
        words += wordsIn(object(object(choice)?.["message"]) ?? {});
      sink.content(words);
      const settled = sink.finish(reason);
      // What the ledger prices is what the client reads: where upstream counted nothing, our own count.
      if (settled && !(usage && object(answer["usage"]))) {
        const said = { ...answer, model: to.model, usage: usageTo(settled) };
        return sink.bytes(Buffer.from(JSON.stringify(said)));
      }
      const better = usage && retold(answer, usage.usage);
      const told = better ? recounted(body, body.indexOf(123), better) : body;
      const out = gather((b) => sink.bytes(b));
      renaming(["model"], to.model)(told, told.indexOf(123), out);
      out.flush();
    },
    end() {},
    fail(fault: Fault) {
      sink.bytes(Buffer.from(JSON.stringify(faultBody(fault))));
    },
  };
}

function endOf(answer: JsonObject): FinishReason {
  const choice = object(list(answer["choices"])[0]);
  const word = text(choice?.["finish_reason"]);
  if (!choice || !word)
    return fail("upstream", "The provider's answer ended before it was finished.", {
      code: "truncated",
    });
  const { reason } = finishOf(word);
  const calls = list(object(choice["message"])?.["tool_calls"]).length > 0;
  return calls && reason === "stop" ? "tool_calls" : reason;
}

/** A stream was asked for, and everything came at once: the client gets its stream nevertheless. */
export function restream(
  body: Buffer,
  sink: RelaySink,
  to: AnswerContext,
  dialect: ChatDialect,
): void {
  const asking: CallContext = {
    op: "generate",
    name: "generate",
    model: to.model,
    info: { model: to.model, kind: "chat" },
    stream: true,
    params: {},
    query: to.query,
    lose: (field, how, code) => to.lose(field, how, code),
  };
  const write = encoder((chunk) => sink.bytes(Buffer.from(chunk)), to);
  let counted = false;
  whole(
    body,
    (event) => {
      if (event.type === "start") sink.start(event.id ?? "");
      if (event.type === "open") sink.content(0);
      if (event.type === "delta") sink.content(Buffer.byteLength(event.text));
      if (event.type === "usage") {
        counted = true;
        sink.usage(event);
      }
      if (event.type === "finish") {
        const settled = sink.finish(event.reason);
        if (settled && !counted) write.event({ type: "usage", usage: settled });
      }
      write.event(event);
    },
    asking,
    dialect,
  );
}
