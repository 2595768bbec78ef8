// Caches data that is derived from parts that many requests share. At thousands of requests per
// second, most requests differ only in IDs, times, and counts. All other data is computed once and
// reused.
import type { RequestRecord, RequestRecordCall } from "tollgate/plugin";

/**
 * Maximum number of entries. Clients choose parts of the key. The cache is therefore cleared when
 * it is full.
 */
export const MAX_TEMPLATES = 2_048;
/** Maximum number of entries for one model and one API key. */
const MAX_PER_MODEL_AND_KEY = 32;
/**
 * Requests with longer model names are not cached, because a client can send a model name of any
 * length.
 */
const MAX_MODEL_LENGTH = 256;

/** The properties that all requests with the same cached `T` have in common. */
type TemplateKey = ReturnType<typeof templateKeyOf>;
interface CacheEntry<T> {
  readonly key: TemplateKey;
  readonly value: T;
}

export class TemplateCache<T> {
  readonly #create: () => T;
  readonly #byModelAndKey = new Map<string, Map<string | undefined, CacheEntry<T>[]>>();
  #count = 0;
  #last: CacheEntry<T> | undefined;

  constructor(make: () => T) {
    this.#create = make;
  }

  get size(): number {
    return this.#count;
  }

  /**
   * Returns the cached value for requests of the same kind, or undefined if the request is not
   * cacheable, for example because it has several calls. A value may depend on all parts of the
   * request except its IDs, times, sizes, labels, and client address. A value may also depend on
   * the request's only call, except on its usage, times, and cost.
   */
  get(record: RequestRecord): T | undefined {
    if (this.#last && matchesKey(record, this.#last.key)) return this.#last.value;
    if (!isCacheable(record)) return undefined;
    const beside = this.#entriesFor(record);
    for (const one of beside) if (matchesKey(record, one.key)) return (this.#last = one).value;
    if (beside.length >= MAX_PER_MODEL_AND_KEY) this.#count -= beside.splice(0).length;
    const made = { key: templateKeyOf(record), value: this.#create() };
    beside.push(made);
    this.#count++;
    return (this.#last = made).value;
  }

  #entriesFor({ model, key }: RequestRecord): CacheEntry<T>[] {
    if (this.#count >= MAX_TEMPLATES) {
      this.#byModelAndKey.clear();
      this.#count = 0;
    }
    let ofModel = this.#byModelAndKey.get(model);
    if (!ofModel) this.#byModelAndKey.set(model, (ofModel = new Map()));
    let beside = ofModel.get(key);
    if (!beside) ofModel.set(key, (beside = []));
    return beside;
  }
}

const isCacheable = ({ calls, hooks, skippedCandidates, losses, model }: RequestRecord): boolean =>
  calls.length < 2 &&
  !hooks &&
  !skippedCandidates &&
  losses === 0 &&
  model.length <= MAX_MODEL_LENGTH;

function templateKeyOf(record: RequestRecord) {
  const {
    method,
    route,
    frontend,
    operation,
    actionType,
    model,
    alias,
    served,
    stream,
    mode,
    status,
  } = record;
  const { outcome, fault, finish, cached, key, account, privacy, worker, generation } = record;
  const { rpc } = record;
  const call = record.calls[0];
  return {
    method,
    route,
    frontend,
    operation,
    actionType,
    model,
    alias,
    served,
    stream,
    mode,
    status,
    outcome,
    faultKind: fault?.kind,
    faultCode: fault?.code,
    finish,
    cached,
    key,
    account,
    privacy,
    worker,
    generation,
    rpc,
    call: call && {
      n: call.n,
      hedge: call.hedge,
      provider: call.provider,
      model: call.model,
      credential: call.credential,
      mode: call.mode,
      transport: call.transport,
      protocol: call.protocol,
      state: call.state,
      isPriced: call.costNano !== null,
      faultKind: call.fault?.kind,
      faultCode: call.fault?.code,
    },
  };
}

function matchesKey(record: RequestRecord, by: TemplateKey): boolean {
  return (
    record.model === by.model &&
    record.key === by.key &&
    record.status === by.status &&
    record.stream === by.stream &&
    record.frontend === by.frontend &&
    record.route === by.route &&
    record.method === by.method &&
    record.outcome === by.outcome &&
    record.finish === by.finish &&
    record.served === by.served &&
    record.mode === by.mode &&
    record.operation === by.operation &&
    record.actionType === by.actionType &&
    record.alias === by.alias &&
    record.cached === by.cached &&
    record.account === by.account &&
    record.privacy === by.privacy &&
    record.worker === by.worker &&
    record.generation === by.generation &&
    record.fault?.kind === by.faultKind &&
    record.fault?.code === by.faultCode &&
    isCacheable(record) &&
    matchesRpc(record.rpc, by.rpc) &&
    matchesCallKey(record.calls[0], by.call)
  );
}

function matchesRpc(rpc: RequestRecord["rpc"], by: RequestRecord["rpc"]): boolean {
  if (!rpc || !by) return !rpc && !by;
  return (
    rpc.method === by.method &&
    rpc.target === by.target &&
    rpc.errorType === by.errorType &&
    rpc.version === by.version &&
    rpc.system === by.system
  );
}

function matchesCallKey(call: RequestRecordCall | undefined, by: TemplateKey["call"]): boolean {
  if (!call || !by) return !call && !by;
  return (
    call.provider === by.provider &&
    call.model === by.model &&
    call.credential === by.credential &&
    call.n === by.n &&
    call.hedge === by.hedge &&
    call.mode === by.mode &&
    call.transport === by.transport &&
    call.protocol === by.protocol &&
    call.state === by.state &&
    (call.costNano !== null) === by.isPriced &&
    call.fault?.kind === by.faultKind &&
    call.fault?.code === by.faultCode
  );
}
