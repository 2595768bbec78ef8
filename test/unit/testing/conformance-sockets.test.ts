// The kit's checks of sockets: a correct one passes, and each planted fault fails the check that is
// named for it.
import { describe, expect, it } from "vitest";
import {
  chatOperation,
  defineProvider,
  fail,
  type Definition,
  type Frontend,
  type MeteredResponse,
  type MeterSink,
  type Provider,
  type ProviderSession,
  type SocketMessage,
} from "tollgate/plugin";
import { responses } from "tollgate/protocols/responses";
import { conformanceChecks } from "tollgate/testing";
import {
  checkHostileMessages,
  checkProviderSessions,
  checkSocketRoutes,
} from "../../../src/testing/conformance/sockets.ts";

const parsed = (message: SocketMessage): any => {
  try {
    const event = JSON.parse(message.toString());
    if (typeof event === "object" && event !== null) return event;
  } catch {
    // Rejected below.
  }
  return fail("invalid", "The message is not an object.");
};

const session = (faults: object = {}) => ({
  readMessage: (message: SocketMessage) => (parsed(message) ? { body: message } : undefined),
  encodeEvent: (data: string) => data,
  encodeError: ({ body }: any) => JSON.stringify(body),
  encodeNotice: (notice: string) => notice,
  close: () => {},
  ...faults,
});
const frontend = (faults: object = {}, route: object = {}): Frontend =>
  ({
    protocol: responses(),
    routes: [],
    sockets: [{ path: "/x", actionType: "generate", openSession: () => session(faults), ...route }],
  }) as never;

const meter = (sink: MeterSink, faults: object = {}) => {
  const running = new Map<string, MeteredResponse>();
  return {
    readClientMessage: (message: SocketMessage) => void parsed(message),
    readProviderMessage(message: SocketMessage) {
      let event: any;
      try {
        event = JSON.parse(message.toString());
      } catch {
        return undefined;
      }
      if (event?.type === "begin") running.set(event.id, sink.beginResponse());
      return undefined;
    },
    encodeCancel: () => "cancel",
    ...faults,
  };
};
const relay = (faults: object = {}, half: object = {}, route: object = {}): Frontend =>
  ({
    routes: [],
    protocol: {
      id: "toy",
      operationSpec: chatOperation,
      socket: {
        createMeter: (sink: MeterSink) => meter(sink, faults),
        encodeFault: ({ message }: any) => ({ message }),
        ...half,
      },
    },
    sockets: [{ path: "/x", action: "live", readModel: () => ({ model: "m" }), ...route }],
  }) as never;

describe("a socket route", () => {
  it.each([
    ["requests", frontend()],
    ["a relay", relay()],
  ])("that is correct passes: %s", (_, made) => {
    expect(() => checkSocketRoutes(made)).not.toThrow();
    expect(() => checkHostileMessages(made)).not.toThrow();
  });

  it.each([
    [/must start with/, frontend({}, { path: "x" })],
    [/not a valid sub-protocol/, frontend({}, { subprotocols: ["a b"] })],
    [/either openSession or readModel/, relay({}, {}, { openSession: () => session() })],
    [/either openSession or readModel/, relay({}, {}, { readModel: undefined, path: "/y" })],
    [/needs a protocol with a socket half/, { ...relay(), protocol: responses() }],
  ])("with a wrong shape fails: %s", (message, made) => {
    const clean = { ...made, sockets: made.sockets!.map(withoutUndefined) } as unknown as Frontend;
    expect(() => checkSocketRoutes(clean)).toThrow(message);
  });
});

const withoutUndefined = (route: object) =>
  Object.fromEntries(Object.entries(route).filter(([, value]) => value !== undefined));

describe("a session", () => {
  it.each([
    [/not a fault/, { readMessage: (message: SocketMessage) => JSON.parse(message.toString()) }],
    [/has a body/, { readMessage: () => ({ body: 1 }) }],
    [/message of an error/, { encodeError: () => "{}" }],
    [/encodeEvent/, { encodeEvent: () => 1 }],
    [/encodeNotice/, { encodeNotice: () => ({}) }],
    [
      /early end/,
      {
        close: () => {
          throw new Error("early end");
        },
      },
    ],
  ])("with a planted fault fails: %s", (message, faults) => {
    expect(() => checkHostileMessages(frontend(faults))).toThrow(message);
  });
});

describe("a meter", () => {
  it.each([
    [/not a fault/, { readClientMessage: (message: SocketMessage) => JSON.parse(String(message)) }],
    [/no message/, { readProviderMessage: () => 1 }],
    [/SyntaxError|JSON/, { readProviderMessage: (m: SocketMessage) => void JSON.parse(String(m)) }],
    [/encodeCancel/, { encodeCancel: () => ({}) }],
  ])("with a planted fault fails: %s", (message, faults) => {
    expect(() => checkHostileMessages(relay(faults))).toThrow(message);
  });

  it("that reports after the end of a response fails", () => {
    const made = relay(
      {},
      {
        createMeter: (sink: MeterSink) =>
          meter(sink, {
            readProviderMessage() {
              const response = sink.beginResponse();
              response.reportFinish("stop");
              response.reportContent(1);
            },
          }),
      },
    );
    expect(() => checkHostileMessages(made)).toThrow(/already ended/);
  });

  it.each([
    [/is not shown/, { encodeFault: () => ({}) }],
    [/not a close code/, { encodeFault: () => ({ close: 12 }) }],
  ])("with an error that clients cannot read fails: %s", (message, half) => {
    expect(() => checkHostileMessages(relay({}, half))).toThrow(message);
  });
});

describe("a session of a provider", () => {
  const provider = (faults: Partial<ProviderSession> = {}, sockets: object = {}): Provider => {
    const protocol = responses();
    const create = (): ProviderSession => ({
      continuable: undefined,
      prepareMessage: () => true,
      readMessage: () => ({ event: "data: {}\n\n" }),
      ...faults,
    });
    return {
      endpoints: [
        {
          protocol: { ...protocol, client: { ...protocol.client!, createSession: create } },
          base: "https://acme.test/v1",
          auth: "none",
          sockets: { generate: { path: "/responses" }, ...sockets },
        },
      ],
    } as never;
  };

  it("that is correct passes", () => {
    expect(() => checkProviderSessions(provider())).not.toThrow();
    const own = { ...provider().endpoints[0]!, protocol: responses() } as never;
    expect(() => checkProviderSessions({ endpoints: [own] })).not.toThrow();
  });

  it.each([
    [/two line breaks/, { readMessage: () => ({ event: "data: {}" }) }],
    [/ends the response/, { readMessage: () => ({ rejection: rejection(400) }) }],
    [
      /status of an HTTP error/,
      { readMessage: () => ({ rejection: rejection(200), isLast: true }) },
    ],
    [/sent again/, { readMessage: () => ({ event: "data: {}\n\n", needsNewConnection: true }) }],
    [/while one runs/, { continuable: "r1" }],
  ] as [RegExp, Partial<ProviderSession>][])(
    "with a planted fault fails: %s",
    (message, faults) => {
      expect(() => checkProviderSessions(provider(faults))).toThrow(message);
    },
  );

  it.each([
    [/must start with/, { generate: { path: "responses" } }],
    [/not a valid sub-protocol/, { generate: { path: "/x", subprotocols: ["a,b"] } }],
  ])("with a wrong address fails: %s", (message, sockets) => {
    expect(() => checkProviderSessions(provider({}, sockets))).toThrow(message);
  });
});

it("a provider whose protocol is only relayed passes every check", async () => {
  const { protocol } = relay();
  const definition = defineProvider({
    api: 1,
    name: "toy",
    summary: "Toy",
    setup: () => ({
      endpoints: [
        {
          protocol: protocol!,
          base: "https://acme.test",
          auth: "none",
          sockets: { live: { path: "/live" } },
        },
      ],
    }),
  });
  for (const { run } of conformanceChecks(definition as Definition, { recordings: false }))
    await run();
});

const rejection = (status: number) => ({ status, body: {}, headers: {} });
