// What many requests have alike. Of thousands a second most differ in their ids, times and counts alone: what is made of the rest
// is made once, and found again.
import type { RequestRecord, RequestRecordCall } from "tollgate/plugin";

/** Clients choose some of it: with more than this it begins anew. */
export const MAX_TEMPLATES = 2_048;
/** Of one model and one key. */
const MAX_PER_MODEL_AND_KEY = 32;
/** A client may call its model by a whole book. */
const MAX_MODEL_LENGTH = 256;

/** What all requests have that share one `T`. */
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
   * What is made of it may say all of a request but its ids, times, sizes, labels and the client's address, and of its only call
   * all but its usage, times and cost. Undefined: it is unlike others, such as one of several calls.
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
    call: call && {
      n: call.n,
      hedge: call.hedge,
      provider: call.provider,
      model: call.model,
      credential: call.credential,
      mode: call.mode,
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
    matchesCallKey(record.calls[0], by.call)
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
    call.state === by.state &&
    (call.costNano !== null) === by.isPriced &&
    call.fault?.kind === by.faultKind &&
    call.fault?.code === by.faultCode
  );
}
