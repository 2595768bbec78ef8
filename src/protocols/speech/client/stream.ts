// A host's sound, as events: one item a piece.
import { BOUNDS } from "../../../lib/bounds.ts";
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { HeadersIn } from "../../../model/values.ts";
import type { CallContext, Decoder } from "../../../plugin/protocol.ts";
import { sse } from "../../sse/index.ts";
import { heard, isEvents, silent, truncated } from "./reading.ts";
import { sounding } from "./sounding.ts";

type Emit = (event: ModelEvent) => void;

/** Pieces of one size, however they came: what is made of them does not depend on how the bytes were cut. */
const PIECE = 4096;

export const stream = (emit: Emit, _of: CallContext | undefined, headers: HeadersIn): Decoder =>
  isEvents(headers) ? inEvents(emit) : asItComes(emit, headers);

function inEvents(emit: Emit): Decoder {
  let index = 0;
  let over = false;
  emit({ type: "start" });
  const events = sse(
    (_event, data) => {
      if (over || data === "[DONE]") return;
      const { sound, over: usage } = heard(data);
      if (sound !== undefined)
        emit({ type: "item", index: index++, item: { bytes: Buffer.from(sound, "base64") } });
      if (!usage) return;
      if (index === 0) silent();
      over = true;
      emit({ type: "usage", usage });
      emit({ type: "finish", reason: "stop" });
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

/** Where its end is, only the connection knows. */
function asItComes(emit: Emit, headers: HeadersIn): Decoder {
  if (/^text\//i.test(headers["content-type"] ?? ""))
    fail("upstream", "The provider answered with words where sound was asked for.", {
      code: "bad_content_type",
    });
  let index = 0;
  let held: Buffer[] = [];
  let size = 0;
  emit({ type: "start" });
  const give = (all: boolean): void => {
    const bytes = Buffer.concat(held);
    let at = 0;
    for (; at + PIECE <= bytes.length || (all && at < bytes.length); at += PIECE)
      emit({ type: "item", index: index++, item: { bytes: bytes.subarray(at, at + PIECE) } });
    held = at < bytes.length ? [bytes.subarray(at)] : [];
    size = Math.max(0, bytes.length - at);
  };
  const sound = sounding((bytes) => {
    held.push(bytes);
    size += bytes.length;
    if (size >= PIECE) give(false);
  });
  return {
    push: (chunk) => sound.push(chunk),
    end() {
      sound.end();
      give(true);
      if (index === 0) silent();
      emit({ type: "finish", reason: "stop" });
    },
  };
}
