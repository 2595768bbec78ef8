// The events of a stream, as a client of the Responses API receives them over a WebSocket.
import { describe, expect, it } from "vitest";
import { fakes } from "tollgate/testing";
import { ResponsesSession } from "../../../plugins/frontends/responses-socket.ts";

const session = new ResponsesSession(fakes.requestHead(), {
  memory: undefined,
  find: undefined,
  readInput: () => Promise.reject(new Error("not called")),
});
const encoded = (data: string, lane?: string): unknown => {
  const text = session.encodeEvent(data, { body: "{}", ...(lane !== undefined && { lane }) });
  return text === undefined ? undefined : JSON.parse(text);
};

describe("an event", () => {
  it("has the ID of its lane", () => {
    expect(encoded('{"type":"a"}')).toEqual({ type: "a" });
    expect(encoded('{"type":"a"}', "x")).toEqual({ stream_id: "x", type: "a" });
  });

  it.each(["{}", "{ }", ' {"type":"a"}', '{ "type":"a"}'])(
    "is valid JSON in a lane: %j",
    (data) => {
      expect(encoded(data, "x")).toEqual({ stream_id: "x", ...JSON.parse(data) });
    },
  );

  it.each(['"text"', "[1]", "null", "7", "{", ""])(
    "that is no object reaches no lane: %j",
    (data) => {
      expect(encoded(data, "x")).toBeUndefined();
    },
  );

  it.each([
    '{"type":"error","code":"c","message":"m","param":null,"sequence_number":3}',
    '{"sequence_number":3,"type":"error","code":"c","message":"m","param":null}',
    '{ "type": "error", "code": "c", "message": "m", "param": null, "sequence_number": 3 }',
  ])("with an error has its members in `error` only: %s", (data) => {
    expect(encoded(data)).toEqual({
      type: "error",
      sequence_number: 3,
      error: { type: "server_error", code: "c", message: "m", param: null },
    });
  });
});
