// The same in one piece: what would have been streamed.
import type { ModelAnswer } from "../../../model/event.ts";
import type { Sound } from "../../../model/sound.ts";
import type { AnswerContext } from "../../../plugin/protocol.ts";
import { stream } from "./stream.ts";

export function whole(
  { items = [], usage, finish }: ModelAnswer,
  to: Pick<AnswerContext, "body" | "id">,
): Buffer {
  const pieces: Buffer[] = [];
  const { event } = stream((piece) => pieces.push(Buffer.from(piece as string)), to);
  (items as readonly Sound[]).forEach((item, index) => event({ type: "item", index, item }));
  event({ type: "usage", usage });
  event(finish);
  return Buffer.concat(pieces);
}
