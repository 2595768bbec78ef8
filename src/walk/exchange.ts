import type { IncomingMessage, ServerResponse } from "node:http";
import { fail, type Fault } from "../model/error.ts";
import type { Feature, Privacy } from "../model/facts.ts";
import { chatWork } from "../model/chat-work.ts";
import type { Work } from "../model/work.ts";
import type { Kind, ModelRequest } from "../model/request.ts";
import type { Body, HeadersIn } from "../model/values.ts";
import type { Call, CallRecord } from "../plugin/call.ts";
import type { ClientCertificate, Exchange } from "../plugin/exchange.ts";
import type { Identity } from "../plugin/identity.ts";
import type { RequestRecordHook, RequestTrace } from "../plugin/observer.ts";
import type { Outcome } from "../plugin/outcome.ts";
import type { WalkRoute } from "../plugin/frontend.ts";
import type { Op } from "../plugin/protocol.ts";
import type { Limit, LimitState } from "../plugin/limit.ts";
import type { Reserve } from "../plugin/store.ts";
import { inputUpTo } from "../money/estimate.ts";
import type { Generation } from "./generation.ts";
import type { MountedFrontend, MountedRoute } from "./mounted.ts";
import { stricter, toldLimits, type Branch } from "./accounts.ts";
import type { Asker } from "./asker.ts";
import type { ClaimedRequest } from "./claims.ts";
import { certificateOf } from "./client-certificate.ts";
import { notedHeader } from "./answer/noted-header.ts";
import { noted } from "./labels.ts";
import { placesOf, shown } from "./secret-headers.ts";
import type { RouteFindings } from "./candidates/findings.ts";
import type { ReceivedBody } from "./received-body.ts";
import { Stay } from "./bounds/stay.ts";
import { traceOf } from "./trace.ts";

/** The walk's own side of an exchange: stations write here, plugins see it only through the readonly view. */
export interface ExchangeState extends RouteFindings {
  readonly gen: Generation;
  /** Of the protocol that is spoken: where its route speaks several, reading the body may have changed it. */
  frontend: MountedFrontend;
  /** Undefined: the frontend answers it itself. */
  readonly route: WalkRoute | undefined;
  /** As its plugin declares it. */
  readonly path: string;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly started: number;
  bytesIn: number;
  received: ReceivedBody | undefined;
  /** After the rewrite hooks; what a translated call encodes. */
  rewritten: ModelRequest | undefined;
  tightened: boolean;
  /** What was promised of the candidate that was asked last. */
  promised: string | undefined;
  headers: Map<string, string> | undefined;
  labels: Record<string, string> | undefined;
  /** What its last row in the ledger says. */
  rowLabels: Reserve["labels"] | undefined;
  limits: readonly LimitState[];
  calls: CallRecord[];
  hooks: RequestRecordHook[] | undefined;
  fault: Fault | undefined;
  cached: boolean;
  finish: Outcome["finish"];
  /** The call that was begun last. */
  last: (Pick<Outcome, "lane" | "losses"> & Pick<Call, "n" | "provider">) | undefined;
  /** When the first call was sent, how many were, and the provider of the last one. */
  sent: { readonly since: number; readonly n: number; readonly provider: string } | undefined;
  bytesOut: number;
  /** It waited so long for others: for the client's body, for providers' answers; and when it last did. */
  awayMs: number;
  awayUntil: number;
  gone: boolean;
  onGone: (() => void)[];
  readonly stay: Stay;
  /** Its Idempotency-Key, once it is claimed. */
  claim: Pick<ClaimedRequest, "who" | "name" | "request"> | undefined;
  /** The accounts that its key draws on. */
  branch: Branch | undefined;
  /** The plugin that makes it on behalf of another one; undefined: a client's own. */
  readonly asker: Asker<HostExchange> | undefined;
}

/** One request, as plugins see it. What is the walk's own stands in `~`. */
export class HostExchange implements Exchange {
  readonly id: string;
  readonly "~": ExchangeState;
  readonly params: { readonly [name: string]: string };
  #identity: Identity | undefined;
  #privacy: Privacy = "off";
  #headers: HeadersIn | undefined;
  #query: URLSearchParams | undefined;
  #reading: Promise<HostExchange> | undefined;
  #request: ModelRequest | undefined;
  #size: Exchange["size"] | undefined;
  #aborter: AbortController | undefined;
  #trace: RequestTrace | undefined;
  readonly #receive: (exchange: HostExchange) => Promise<HostExchange>;

  constructor(of: {
    id: string;
    gen: Generation;
    route: MountedRoute;
    req: IncomingMessage;
    res: ServerResponse;
    params: { readonly [name: string]: string };
    receive: (exchange: HostExchange) => Promise<HostExchange>;
    asker?: Asker<HostExchange>;
  }) {
    this.id = of.id;
    this.params = of.params;
    this.#receive = of.receive;
    this["~"] = {
      gen: of.gen,
      frontend: of.route.frontend,
      route: "op" in of.route.route ? of.route.route : undefined,
      path: of.route.path,
      req: of.req,
      res: of.res,
      started: performance.now(),
      bytesIn: 0,
      received: undefined,
      resolution: undefined,
      out: [],
      rested: undefined,
      rewritten: undefined,
      tightened: false,
      promised: undefined,
      headers: undefined,
      labels: undefined,
      rowLabels: undefined,
      limits: [],
      calls: [],
      hooks: undefined,
      fault: undefined,
      cached: false,
      finish: undefined,
      last: undefined,
      sent: undefined,
      bytesOut: 0,
      awayMs: 0,
      awayUntil: 0,
      gone: false,
      onGone: [],
      stay: new Stay(of.gen),
      claim: undefined,
      branch: undefined,
      asker: of.asker,
    };
    of.res.on("close", () => {
      const inner = this["~"];
      inner.stay.written();
      if (of.res.writableFinished) return;
      inner.gone = true;
      this.#aborter?.abort();
      for (const leave of inner.onGone) {
        try {
          leave();
        } catch (err) {
          inner.gen.log.error(
            { request: this.id, err },
            "the end of a call failed when its client left",
          );
        }
      }
    });
  }

  get frontend(): string {
    return this["~"].frontend.name;
  }
  get method(): string {
    return this["~"].req.method ?? "GET";
  }
  get path(): string {
    const url = this["~"].req.url ?? "/";
    const mark = url.indexOf("?");
    return mark < 0 ? url : url.slice(0, mark);
  }
  get address(): string {
    return this["~"].req.socket.remoteAddress ?? "";
  }
  get certificate(): ClientCertificate | undefined {
    return certificateOf(this["~"].req.socket);
  }
  get headers(): HeadersIn {
    return (this.#headers ??= shown(this["~"].req.headers));
  }
  get query(): URLSearchParams {
    return (this.#query ??= new URLSearchParams(this["~"].req.url?.slice(this.path.length + 1)));
  }
  get hasQuery(): boolean {
    return this["~"].req.url?.includes("?") === true;
  }
  get presents(): readonly string[] {
    return placesOf(this["~"].req);
  }
  get signal(): AbortSignal {
    if (!this.#aborter) {
      this.#aborter = new AbortController();
      if (this["~"].gone) this.#aborter.abort();
    }
    return this.#aborter.signal;
  }
  /** Made when first asked for: where no observer and no provider is told of it, there is none. */
  get trace(): RequestTrace {
    return (this.#trace ??= traceOf(this["~"].req.headers));
  }
  get identity(): Identity | undefined {
    return this.#identity;
  }
  get privacy(): Privacy {
    return this.#privacy;
  }
  get limits(): readonly Limit[] {
    return toldLimits(this.#identity, this["~"].branch);
  }

  identify(who: Identity): void {
    if (this.#identity) fail("internal", "A request is identified once.");
    const { gen, stay } = this["~"];
    const branch = who.account === undefined ? undefined : gen.accounts.branch(who.account);
    const identity = branch ? gen.accounts.identity(who, branch) : who;
    this.#identity = identity;
    this["~"].branch = branch;
    stay.belongs(identity.id);
    if (identity.privacy) this.#privacy = stricter(this.#privacy, identity.privacy);
  }

  tighten(to: Privacy): void {
    this["~"].tightened = true;
    this.#privacy = stricter(this.#privacy, to);
  }

  header(name: string, value: string): void {
    this["~"].headers = notedHeader(this["~"].headers, name, value);
  }

  label(name: string, value: string): void {
    this["~"].labels = noted(this["~"].labels, name, value);
  }

  occupy(scope: string, most: number): void {
    // What is no call is not counted among them.
    const { route, stay, branch } = this["~"];
    if (route && !this.#reading) stay.occupy(scope, most, branch?.quiet.has(scope));
  }

  /** Other fields stand in its body now: what was made of the body is made anew. */
  readAnew(): void {
    this.#request = undefined;
    this.#size = undefined;
  }

  read(): Promise<Exchange> {
    return (this.#reading ??= this.#receive(this));
  }

  /** Its body is asked for and is not here: whatever waits for that waits for the client. */
  get uploading(): boolean {
    const { received, req } = this["~"];
    return this.#reading !== undefined && received === undefined && !req.destroyed;
  }

  get protocol(): string {
    return this["~"].frontend.protocol?.id ?? "";
  }
  get kind(): Kind {
    return this.work.kind;
  }
  /** Nothing may be lost on the way: the gateway's setting, or the client's own wish. */
  get strict(): boolean {
    const { gen, req } = this["~"];
    return gen.strict || req.headers["x-tollgate-strict"] === "true";
  }
  get work(): Work {
    return this["~"].frontend.protocol?.work ?? chatWork;
  }
  get op(): Op {
    return this["~"].received?.op ?? this["~"].route?.op ?? "generate";
  }
  get name(): string {
    return this["~"].received?.name ?? this["~"].route?.name ?? this.op;
  }
  get model(): string {
    return this["~"].received?.model ?? "";
  }
  get stream(): boolean {
    return this["~"].received?.stream ?? false;
  }
  get features(): readonly Feature[] {
    return this["~"].received?.survey.features ?? [];
  }
  get body(): Body {
    return this["~"].received?.body ?? {};
  }
  get size(): Exchange["size"] {
    const { bytes = 0, survey } = this["~"].received ?? {};
    return (this.#size ??= { bytes, input: inputUpTo({ bytes, media: survey?.media }) });
  }
  get request(): ModelRequest {
    return (this.#request ??= this["~"].frontend.server!.request(this.body, this.op));
  }
}
