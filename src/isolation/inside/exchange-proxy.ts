// Requests in the process of an isolated plugin. All hooks of one request receive the same object.
import { fail } from "../../model/error.ts";
import { KnownRequests } from "../known-requests.ts";

type Untrusted = Readonly<Record<string, unknown>>;
export interface ExchangeParams {
  readonly exchange: Untrusted & { readonly id: string };
  readonly request?: unknown;
}
/** Effects of a hook, in order. */
export type HookEffects = unknown[][];

const HEAD_FIELDS = [
  "id",
  "frontend",
  "method",
  "path",
  "address",
  "certificate",
  "params",
  "headers",
  "credentialSources",
  "identity",
  "limits",
  "privacy",
];
const BODY_FIELDS = [
  "protocol",
  "operation",
  "actionType",
  "action",
  "model",
  "stream",
  "features",
  "inputSize",
];

/** One request. Its effects are recorded and sent with the hook's reply. */
export class ExchangeProxy {
  #fields: Untrusted = {};
  #request: unknown;
  #body: unknown;
  #abortController: AbortController | undefined;
  #ended = false;
  /** Effects of the hook that currently runs. */
  effects: HookEffects = [];
  readBody: () => Promise<unknown> = () => fail("internal", "This route does not read the body.");

  update({ exchange, request }: ExchangeParams): this {
    this.#fields = exchange;
    if (request !== undefined) this.#request = request;
    return this;
  }
  static {
    for (const member of [...HEAD_FIELDS, ...BODY_FIELDS])
      Object.defineProperty(this.prototype, member, {
        get(this: ExchangeProxy) {
          return this.#fields[member];
        },
        enumerable: true,
      });
  }
  get query(): URLSearchParams {
    return new URLSearchParams(this.#fields["query"] as string);
  }
  get request(): unknown {
    return this.#request ?? fail("internal", "x.request is not available before the body is read.");
  }
  get body(): unknown {
    return (
      this.#body ??
      fail("internal", "In an isolated plugin, x.body is available only in edit. Use x.request.")
    );
  }
  set body(fields: unknown) {
    this.#body = fields;
  }
  get signal(): AbortSignal {
    this.#abortController ??= new AbortController();
    if (this.#ended) this.#abortController.abort();
    return this.#abortController.signal;
  }
  end(): void {
    this.#ended = true;
    this.#abortController?.abort();
  }
  identify(who: unknown): void {
    this.effects.push(["identify", who]);
    this.#fields = { ...this.#fields, identity: who };
  }
  requirePrivacy(to: string): void {
    this.effects.push(["requirePrivacy", to]);
  }
  acquireSlot(scope: string, max: number): void {
    this.effects.push(["acquireSlot", scope, max]);
  }
  setResponseHeader(name: string, value: string): void {
    this.effects.push(["setResponseHeader", name, value]);
  }
  addLabel(name: string, value: string): void {
    this.effects.push(["addLabel", name, value]);
  }
}

export class ExchangeProxies {
  readonly #byId = new KnownRequests<ExchangeProxy>();

  of(frame: ExchangeParams): ExchangeProxy {
    const { id } = frame.exchange;
    let x = this.#byId.get(id);
    if (!x) this.#byId.set(id, (x = new ExchangeProxy()));
    return x.update(frame);
  }
  cancel(id: string): void {
    this.#byId.get(id)?.end();
  }
  end(id: string): void {
    this.#byId.remove(id)?.end();
  }
}
