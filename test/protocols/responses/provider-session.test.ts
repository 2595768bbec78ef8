// Requests over a WebSocket of the provider: their messages, and how its messages are read.
import { describe, expect, it } from "vitest";
import { createOutgoing } from "tollgate/testing";
import { ResponsesProviderSession } from "../../../src/protocols/responses/client/session.ts";

const user = (text: string) => ({ role: "user", content: text });
const output = { type: "message", role: "assistant", content: [] };
const completed = (id: string) =>
  JSON.stringify({ type: "response.completed", response: { id, output: [output] } });

function sent(session: ResponsesProviderSession, body: object, continued?: object) {
  const out = createOutgoing(body as never);
  expect(session.prepareMessage(out, continued as never)).toBe(true);
  return out.body as any;
}

describe("a request", () => {
  it("is a response.create without the fields of HTTP", () => {
    const session = new ResponsesProviderSession();
    const body = sent(session, { model: "m", input: "Hi", stream: true, background: false });
    expect(body).toEqual({ type: "response.create", model: "m", input: "Hi" });
  });

  it("in the background is sent over HTTP", () => {
    const out = createOutgoing({ model: "m", background: true });
    expect(new ResponsesProviderSession().prepareMessage(out, undefined)).toBe(false);
  });

  describe("that continues a response", () => {
    const begin = () => {
      const session = new ResponsesProviderSession();
      sent(session, { input: [user("1")] });
      expect(session.continuable).toBeUndefined();
      session.readMessage(completed("r1"));
      expect(session.continuable).toBe("r1");
      return session;
    };
    const all = [user("1"), output, user("2")];
    const continued = { id: "r1", items: 2 };

    it("contains only what is new", () => {
      expect(sent(begin(), { input: all }, continued)).toMatchObject({
        previous_response_id: "r1",
        input: [user("2")],
      });
    });

    it("is read once, however often its conversation continues", () => {
      const session = new ResponsesProviderSession();
      const input: object[] = [];
      let reads = 0;
      for (let turn = 1; turn <= 5; turn++) {
        reads = 0;
        const item = (text: string) => ({ ...user(text), toJSON: () => (reads++, text) });
        input.push(item(`${turn}`));
        const of = turn === 1 ? undefined : { id: `r${turn - 1}`, items: input.length - 1 };
        const body = sent(session, { input: [...input] }, of);
        session.readMessage(completed(`r${turn}`));
        expect(body.previous_response_id).toBe(of?.id);
        expect(reads).toBe(turn);
        input.push(output);
      }
    });

    it.each([
      ["other input before it", [user("x"), output, user("2")], continued],
      ["another response", all, { id: "r0", items: 2 }],
      ["nothing new", all.slice(0, 2), continued],
      ["a text as input", "text", continued],
      ["fewer items than were sent", all, { id: "r1", items: 0 }],
    ])("is complete with %s", (_, input, of) => {
      const body = sent(begin(), { input }, of);
      expect(body.input).toEqual(input);
      expect(body).not.toHaveProperty("previous_response_id");
    });

    it.each(["response.failed", "error"])("is complete after %s", (type) => {
      const session = begin();
      sent(session, { input: all }, continued);
      session.readMessage(JSON.stringify({ type, error: { code: "x" }, response: { id: "r2" } }));
      expect(session.continuable).toBeUndefined();
    });
  });
});

describe("a message", () => {
  const running = () => {
    const session = new ResponsesProviderSession();
    sent(session, { input: "Hi" });
    return session;
  };

  it("is an event of a stream", () => {
    expect(running().readMessage('{"type":"response.created"}')).toEqual({
      event: 'event: response.created\ndata: {"type":"response.created"}\n\n',
      isLast: false,
    });
    expect(running().readMessage(completed("r1"))).toMatchObject({ isLast: true });
  });

  it("with line breaks stays one event", () => {
    const { event } = running().readMessage('{\n"type": "a",\r\n"b": "c\\n"}')!;
    expect(event).toBe('event: a\ndata: {"type":"a","b":"c\\n"}\n\n');
  });

  it.each([
    [{ status: 429, error: { type: "rate_limit" } }, 429],
    [{ error: { type: "server_error" } }, 500],
    [{ error: { type: "invalid_request_error" } }, 400],
    [{ status: 200, error: {} }, 400],
  ])("with an error before a response rejects it: %j", (event, status) => {
    const read = running().readMessage(JSON.stringify({ type: "error", ...event }))!;
    expect(read).toMatchObject({ rejection: { status }, isLast: true, needsNewConnection: false });
  });

  it("with an error has its headers in the form of HTTP headers", () => {
    const headers = { "Retry-After": 7, "x-request-id": "r", wrong: { a: 1 }, empty: null };
    const { rejection } = running().readMessage(JSON.stringify({ type: "error", headers }))!;
    expect(rejection!.headers).toEqual({ "retry-after": "7", "x-request-id": "r" });
  });

  it("with an error after it has begun ends it", () => {
    const session = running();
    session.readMessage('{"type":"response.created"}');
    const read = session.readMessage('{"type":"error","error":{"code":"x","message":"Wrong."}}')!;
    expect(read.rejection).toBeUndefined();
    expect(read.isLast).toBe(true);
    expect(read.event).toContain('"code":"x","message":"Wrong."');
  });

  it("that the connection has reached its maximum age needs a new one", () => {
    const code = "websocket_connection_limit_reached";
    const read = running().readMessage(JSON.stringify({ type: "error", error: { code } }));
    expect(read).toMatchObject({ needsNewConnection: true });
  });

  it("that the response is lost needs a new connection only if the request was shortened", () => {
    const lost = JSON.stringify({
      type: "error",
      error: { code: "previous_response_not_found" },
    });
    expect(running().readMessage(lost)).toMatchObject({ needsNewConnection: false });
    const session = running();
    sent(session, { input: [user("1")] });
    session.readMessage(completed("r1"));
    sent(session, { input: [user("1"), output, user("2")] }, { id: "r1", items: 2 });
    expect(session.readMessage(lost)).toMatchObject({ needsNewConnection: true });
  });

  it.each(["", "{", "[]", "null", "{}", '{"type":1}', Buffer.from([0xff])])(
    "that is no event is an error: %j",
    (message) => {
      expect(() => running().readMessage(message)).toThrow();
    },
  );
});
