// Code that such a package may and may not write.
import type { PassthroughSink, ServerHalf } from "tollgate/plugin";
import { speech } from "./speech.ts";

const server = speech().server!;
export const bytes: ServerHalf<"recital"> = { ...server, encodeResponse: () => Buffer.from("x") };
export const json: ServerHalf<"recital"> = { ...server, encodeResponse: () => ({ text: "x" }) };
// @ts-expect-error  text is not an answer: a Buffer or JSON is
export const text: ServerHalf<"recital"> = { ...server, encodeResponse: () => "x" };
export const pieces: ServerHalf<"recital"> = {
  ...server,
  createEncoder(write) {
    write("x");
    write(Buffer.from("x"));
    // @ts-expect-error  an answer is text or bytes
    write({ x: 1 });
    return { writeEvent() {}, writeFault() {} };
  },
};
export function says(sink: PassthroughSink): void {
  sink.setContentType("audio/mpeg");
  // @ts-expect-error  a type is a text
  sink.setContentType({ mime: "audio/mpeg" });
}
