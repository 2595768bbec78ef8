// Checks of socket routes and of providers' sockets: their form, and the behavior of sessions and
// meters with hostile messages and early ends.
import assert from "node:assert/strict";
import { ERRORS, getFault, type ErrorKind } from "../../model/error.ts";
import type { ModelInfo } from "../../model/facts.ts";
import type {
  Frontend,
  RelaySocketRoute,
  RequestSocketRoute,
  SocketRoute,
} from "../../plugin/frontend.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import type { Provider } from "../../plugin/provider.ts";
import type {
  MeteredResponse,
  ProviderMessage,
  ProviderSession,
  SocketHalf,
  SocketMessage,
} from "../../plugin/socket.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import * as fakes from "../fakes.ts";
import { createOutgoing } from "../outgoing.ts";
import { isProtocolEndpoint } from "./operation.ts";

const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;

/** Messages that no client of any protocol should send. */
const HOSTILE: readonly SocketMessage[] = [
  "",
  "{",
  "null",
  "[]",
  "0",
  '"text"',
  "{}",
  '{"type":null}',
  '{"type":{}}',
  '{"type":"__proto__"}',
  '{"type":"constructor","id":{}}',
  `${"[".repeat(2_000)}${"]".repeat(2_000)}`,
  `{"type":"${"x".repeat(100_000)}"}`,
  '{"type":"\ud800"}',
  Buffer.alloc(0),
  Buffer.from([0xff, 0xfe, 0x00]),
  Buffer.alloc(70_000, 0x7b),
];

/** Checks the shape of each socket route. */
export function checkSocketRoutes({ sockets = [], protocol }: Frontend): void {
  for (const route of sockets) {
    for (const path of [route.path].flat())
      assert.ok(path.startsWith("/"), `the path of a socket must start with "/": ${path}`);
    for (const name of route.subprotocols ?? [])
      assert.match(name, TOKEN, `${name} is not a valid sub-protocol name`);
    const kinds = Number("openSession" in route) + Number("readModel" in route);
    assert.equal(kinds, 1, "a socket route has either openSession or readModel");
    const half = "openSession" in route ? "server" : "socket";
    const spoken: Protocol | undefined = route.protocol ?? protocol;
    assert.ok(spoken?.[half], `a socket route needs a protocol with a ${half} half`);
  }
}

/** Sends hostile messages to each socket, and ends its connection early. */
export function checkHostileMessages({ sockets = [], protocol }: Frontend): void {
  for (const route of sockets)
    if (isRequestRoute(route)) checkSession(route);
    else checkMeter((route.protocol ?? protocol)!.socket!, route);
}

const isRequestRoute = (route: SocketRoute): route is RequestSocketRoute => "openSession" in route;

const isMessage = (it: unknown): boolean => typeof it === "string" || Buffer.isBuffer(it);

/** Runs plugin code that may reject a message with a fault, and may not fail in any other way. */
function onlyFaults<T>(what: string, run: () => T): T | undefined {
  try {
    return run();
  } catch (problem) {
    assert.ok(getFault(problem), `${what} threw something that is not a fault: ${String(problem)}`);
    return undefined;
  }
}

function checkSession(route: RequestSocketRoute): void {
  const [path] = [route.path].flat();
  const session = route.openSession(fakes.requestHead());
  for (const message of HOSTILE) {
    const request = onlyFaults(`readMessage of ${path}`, () => session.readMessage(message));
    if (request) assert.ok(isMessage(request.body), "a request has a body");
    for (const kind of Object.keys(ERRORS) as ErrorKind[]) {
      const text = `Something went wrong (${kind}).`;
      const error = {
        status: ERRORS[kind][0],
        body: { error: { message: text, type: kind, code: kind, param: null } },
        headers: {},
      };
      const encoded = session.encodeError(error, request, message);
      assert.ok(String(encoded).includes(text), `${path} does not return the message of an error`);
    }
  }
  const event = session.encodeEvent("{}", { body: "{}" });
  assert.ok(event === undefined || isMessage(event), "encodeEvent returned no message");
  for (const notice of ["draining", "expired"] as const) {
    const message = session.encodeNotice?.(notice);
    assert.ok(message === undefined || isMessage(message), "encodeNotice returned no message");
  }
  session.close?.();
  // The connection may end before a message.
  route.openSession(fakes.requestHead()).close?.();
}

/** A response that a meter began. It must end exactly once. */
class RecordedResponse implements MeteredResponse {
  isOver = false;
  get state(): MeteredResponse["state"] {
    return this.isOver ? "ended" : "running";
  }

  #report(): void {
    assert.ok(!this.isOver, "a meter called a method of a response that it had already ended");
  }
  reportStart(): void {
    this.#report();
  }
  reportContent(): void {
    this.#report();
  }
  reportEstimate(): void {
    this.#report();
  }
  reportEvent(): void {
    this.#report();
  }
  reportUsage(): void {
    this.#report();
  }
  reportFinish(): void {
    this.#report();
    this.isOver = true;
  }
  reportFailure(): void {
    this.#report();
    this.isOver = true;
  }
}

/** Settings that the credential of a client determines, with values of unexpected types. */
const GRANTED: readonly Opt<JsonObject>[] = [
  undefined,
  {},
  { type: 1, model: null, tools: {}, audio: [], max_output_tokens: "1" },
];

function checkMeter(half: SocketHalf, route: RelaySocketRoute): void {
  for (const session of GRANTED) checkMeterOf(half, route, session);
}

function checkMeterOf(
  half: SocketHalf,
  { path }: RelaySocketRoute,
  session: Opt<JsonObject>,
): void {
  const begun: RecordedResponse[] = [];
  const beginResponse = () => {
    const response = new RecordedResponse();
    begun.push(response);
    return response;
  };
  const to = {
    id: "x1",
    model: "m",
    clientModel: "p/m",
    info: { model: "m", operation: "chat" } as ModelInfo,
    privacy: "off" as const,
    query: new URLSearchParams(),
    session,
  };
  const meter = half.createMeter({ beginResponse, checkModel() {} }, to);
  const opening = onlyFaults("encodeOpening", () => meter.encodeOpening?.());
  assert.ok(
    (opening ?? undefined) === undefined || isMessage(opening),
    "encodeOpening returned no message",
  );
  for (const message of HOSTILE) {
    onlyFaults(`readClientMessage of ${String(path)}`, () => meter.readClientMessage(message));
    // A fault ends the connection.
    const shown = onlyFaults(`readProviderMessage of ${String(path)}`, () =>
      meter.readProviderMessage(message),
    );
    assert.ok(
      shown === undefined || shown === null || isMessage(shown),
      "readProviderMessage returned no message",
    );
  }
  const cancel = meter.encodeCancel(beginResponse());
  assert.ok(cancel === undefined || isMessage(cancel), "encodeCancel returned no message");
  for (const kind of Object.keys(ERRORS) as ErrorKind[]) {
    const { message, close } = half.encodeFault({ kind, message: "Wrong." }, { id: "x1" });
    assert.ok(message !== undefined || close !== undefined, `${kind} is not shown to the client`);
    assert.ok(
      close === undefined || (close >= 1_000 && close < 5_000),
      `${close} is not a close code`,
    );
  }
}

/** Sends hostile messages of the provider to each session that sends requests over a socket. */
export function checkProviderSessions({ endpoints }: Provider): void {
  for (const { protocol, sockets = {} } of endpoints.filter(isProtocolEndpoint)) {
    const { client, socket, id } = protocol;
    for (const [action, definition] of Object.entries(sockets)) {
      assert.ok(
        socket || client?.createSession,
        `sockets.${action}: ${id} neither relays sockets nor sends requests over them`,
      );
      const path = definition?.path;
      if (typeof path === "string")
        assert.ok(path.startsWith("/"), `the path of a socket must start with "/": ${path}`);
      for (const name of definition?.subprotocols ?? [])
        assert.match(name, TOKEN, `${name} is not a valid sub-protocol name`);
    }
    if (!client?.createSession) continue;
    for (const message of HOSTILE) {
      const session: ProviderSession = client.createSession();
      const out = createOutgoing({ model: "m", stream: true });
      if (!session.prepareMessage(out, undefined)) continue;
      assert.equal(
        session.continuable,
        undefined,
        `${id}: a session can continue a response while one runs`,
      );
      let read: ProviderMessage | undefined;
      try {
        read = session.readMessage(message);
      } catch {
        // The host ends the connection, and the request fails.
        continue;
      }
      if (read) checkProviderMessage(id, read);
    }
  }
}

function checkProviderMessage(
  id: string,
  { event, isLast, rejection, needsNewConnection }: ProviderMessage,
): void {
  assert.ok(
    event === undefined || event.endsWith("\n\n"),
    `${id}: an event must be text of an event stream, which ends with two line breaks`,
  );
  assert.ok(
    rejection === undefined || (rejection.status >= 400 && rejection.status < 600),
    `${id}: a rejection has the status of an HTTP error`,
  );
  assert.ok(rejection === undefined || isLast === true, `${id}: a rejection ends the response`);
  assert.ok(
    needsNewConnection !== true || rejection,
    `${id}: only a rejected request can be sent again`,
  );
}
