// A host of meters without a network: it reserves at once, and records what a meter reports.
import { fail, type Usage } from "tollgate/plugin";
import type {
  MeteredResponse,
  MeterContext,
  MeterSink,
  ModelEvent,
  ModelInfo,
  Protocol,
  ResponseStart,
  SocketMessage,
  SocketMeter,
} from "tollgate/plugin";
import type { UpstreamSocket } from "./socket-upstream.ts";

export class RecordedResponse implements MeteredResponse {
  state: "reserving" | "running" | "ended" = "running";
  id: string | undefined;
  usage: Usage | undefined;
  estimate: Usage | undefined;
  content = 0;
  finish: string | undefined;
  fault: string | undefined;
  readonly events: ModelEvent[] = [];
  readonly of: ResponseStart;

  constructor(of: ResponseStart) {
    this.of = of;
  }

  reportStart(id: string): void {
    this.id = id;
  }
  reportContent(bytes = 0): void {
    this.content += bytes;
  }
  reportEstimate(usage: Usage): void {
    this.estimate = usage;
  }
  reportEvent(event: ModelEvent): void {
    this.events.push(event);
  }
  reportUsage({ usage }: { usage: Usage }): void {
    this.usage = usage;
  }
  reportFinish(reason: string): void {
    this.#end();
    this.finish = reason;
  }
  reportFailure(fault: { kind: string }): void {
    this.#end();
    this.fault = fault.kind;
  }
  #end(): void {
    if (this.state === "ended") throw new Error("a response ended twice");
    this.state = "ended";
  }
}

export class RecordedSink implements MeterSink {
  readonly responses: RecordedResponse[] = [];
  readonly deniedModels = new Set<string>();
  /** State of each new response. */
  starts: "reserving" | "running" = "running";

  beginResponse(of: ResponseStart = {}): RecordedResponse {
    const response = new RecordedResponse(of);
    response.state = this.starts;
    this.responses.push(response);
    return response;
  }
  checkModel(model: string): void {
    if (this.deniedModels.has(model)) fail("forbidden", `${model} is not allowed`);
  }
}

/** A client and a provider with a meter between them. */
export class MeteredLink {
  readonly sink = new RecordedSink();
  readonly meter: SocketMeter;
  /** Messages that the client received, and that the provider received. */
  readonly toClient: string[] = [];
  readonly toProvider: string[] = [];
  readonly #read: (message: string) => unknown;
  /** Number of the provider's messages that are still delivered. */
  left = Infinity;

  constructor(
    protocol: Protocol<"realtime">,
    provider: (socket: UpstreamSocket) => { read(message: string): unknown },
    more: Partial<MeterContext> = {},
  ) {
    const info: ModelInfo = { model: "m", operation: "realtime" };
    this.meter = protocol.socket!.createMeter(this.sink, {
      id: "req_1",
      model: "m",
      clientModel: "vendor/m",
      info,
      privacy: "off",
      query: new URLSearchParams(),
      session: undefined,
      ...more,
    });
    const session = provider({
      url: new URL(`ws://localhost/realtime?model=${more.model ?? "m"}`),
      headers: {},
      received: [],
      sent: [],
      send: async (message) => this.deliver(JSON.stringify(message)),
      close: () => {},
      closed: new Promise(() => {}),
    });
    this.#read = (message) => session.read(message);
  }

  /** A message of the client passes the meter. */
  async send(message: object | string): Promise<void> {
    const text = typeof message === "string" ? message : JSON.stringify(message);
    const replaced = this.meter.readClientMessage(text);
    if (replaced === null) return;
    const forwarded = asText(replaced ?? text);
    this.toProvider.push(forwarded);
    await this.#read(forwarded);
  }

  /** A message of the provider passes the meter. */
  deliver(text: string): void {
    if (this.left-- <= 0) return;
    const replaced = this.meter.readProviderMessage(text);
    if (replaced === null) return;
    this.toClient.push(asText(replaced ?? text));
  }

  /** Events that the client received, of this type. */
  received(type: string): { readonly [name: string]: any }[] {
    return this.toClient
      .map((text) => JSON.parse(text) as { type?: string })
      .filter((event) => event.type === type);
  }
}

const asText = (message: SocketMessage): string =>
  typeof message === "string" ? message : message.toString();
