// A host's stream, as events: one block of text, and its passages. Hosts that do not stream answer in one piece all the same.
import type { ModelEvent } from "../../../model/event.ts";
import type { Passage } from "../../../model/sound.ts";
import type { HeadersIn, JsonObject } from "../../../model/values.ts";
import { BOUNDS } from "../../../lib/bounds.ts";
import { formOf } from "../../../lib/media.ts";
import { fail } from "../../../model/error.ts";
import type { CallContext, Decoder } from "../../../plugin/protocol.ts";
import { throwFailure } from "../../failure/failure.ts";
import { list, parsed, text } from "../../json.ts";
import { sse } from "../../sse/index.ts";
import { finishing, segmentOf, transcriptOf, truncated } from "./reading.ts";
import { whole } from "./whole.ts";

type Emit = (event: ModelEvent) => void;

export const stream = (emit: Emit, _of: CallContext | undefined, headers: HeadersIn): Decoder =>
  formOf(headers["content-type"]) === "stream" ? inEvents(emit) : inOnePiece(emit, headers);

function inOnePiece(emit: Emit, headers: HeadersIn): Decoder {
  const held: Buffer[] = [];
  return {
    push: (chunk) => void held.push(chunk),
    end: () => whole(Buffer.concat(held), emit, undefined, headers),
  };
}

/** What one event says, by the end of its name: vendors begin it with words of their own. */
export type Heard =
  | { readonly what: "delta"; readonly words: string; readonly said: JsonObject }
  | { readonly what: "segment" | "done" | "other"; readonly said: JsonObject };

export function heard(data: string): Heard {
  const said = parsed(data);
  if (!said)
    return fail("upstream", "The provider sent an event that is no JSON.", { code: "bad_event" });
  if ((said["error"] !== undefined && said["error"] !== null) || said["type"] === "error")
    return throwFailure(said);
  const type = text(said["type"]) ?? "";
  if (type.endsWith(".delta"))
    return { what: "delta", words: text(said["delta"]) ?? text(said["text"]) ?? "", said };
  if (type.endsWith(".segment")) return { what: "segment", said };
  return { what: type.endsWith(".done") ? "done" : "other", said };
}

function inEvents(emit: Emit): Decoder {
  let over = false;
  let spoken = false;
  let index = 0;
  let segments = 0;
  emit({ type: "start" });
  emit({ type: "open", index: 0, block: { type: "text" } });
  const item = (one: Passage): void => emit({ type: "item", index: index++, item: one });
  const done = (said: JsonObject): void => {
    over = true;
    const { text: words, passages, usage } = transcriptOf(said);
    if (!spoken && words !== "") emit({ type: "delta", index: 0, text: words });
    emit({ type: "close", index: 0 });
    for (const one of passages) if (one.type !== "segment" || segments === 0) item(one);
    finishing(emit, usage);
  };
  const events = sse(
    (_event, data) => {
      if (over || data === "[DONE]") return;
      const one = heard(data);
      if (one.what === "delta" && one.words !== "") {
        spoken = true;
        const logprobs = list(one.said["logprobs"]);
        emit({
          type: "delta",
          index: 0,
          text: one.words,
          ...(logprobs.length > 0 && { logprobs }),
        });
      } else if (one.what === "segment") {
        const segment = segmentOf(one.said);
        if (segment) {
          segments++;
          item(segment);
        }
      } else if (one.what === "done") done(one.said);
    },
    { line: BOUNDS.event.most },
  );
  return {
    push: (chunk) => events.push(chunk),
    end() {
      events.end();
      if (!over) truncated();
    },
  };
}
