// What such a package may write, and what it may not.
import type { RelaySink, ServerHalf } from "tollgate/plugin";
import { speech } from "./speech.ts";

const server = speech().server!;
export const bytes: ServerHalf<"recital"> = { ...server, whole: () => Buffer.from("x") };
export const json: ServerHalf<"recital"> = { ...server, whole: () => ({ text: "x" }) };
// @ts-expect-error  text is not an answer: a Buffer or JSON is
export const text: ServerHalf<"recital"> = { ...server, whole: () => "x" };
export const pieces: ServerHalf<"recital"> = {
  ...server,
  stream(write) {
    write("x");
    write(Buffer.from("x"));
    // @ts-expect-error  an answer is text or bytes
    write({ x: 1 });
    return { event() {}, fail() {} };
  },
};
export function says(sink: RelaySink): void {
  sink.type("audio/mpeg");
  // @ts-expect-error  a type is a text
  sink.type({ mime: "audio/mpeg" });
}
