// What many requests have alike. Of thousands a second most differ in their ids, times and counts alone: what is made of the rest
// is made once, and found again.
import type { RequestRecord, RequestRecordCall } from "tollgate/plugin";

/** Clients choose some of it: with more than this it begins anew. */
export const MOST_ALIKE = 2_048;
/** Of one model and one key. */
const MOST_BESIDE = 32;
/** A client may call its model by a whole book. */
const LONGEST_MODEL = 256;

/** What all requests have that share one `T`. */
type Likeness = ReturnType<typeof likenessOf>;
interface Shared<T> {
  readonly by: Likeness;
  readonly of: T;
}

export class Alike<T> {
  readonly #make: () => T;
  readonly #all = new Map<string, Map<string | undefined, Shared<T>[]>>();
  #count = 0;
  #last: Shared<T> | undefined;

  constructor(make: () => T) {
    this.#make = make;
  }

  get size(): number {
    return this.#count;
  }

  /**
   * What is made of it may say all of a request but its ids, times, sizes, labels and the client's address, and of its only call
   * all but its usage, times and cost. Undefined: it is unlike others, such as one of several calls.
   */
  of(record: RequestRecord): T | undefined {
    if (this.#last && isLike(record, this.#last.by)) return this.#last.of;
    if (!mayBeLike(record)) return undefined;
    const beside = this.#beside(record);
    for (const one of beside) if (isLike(record, one.by)) return (this.#last = one).of;
    if (beside.length >= MOST_BESIDE) this.#count -= beside.splice(0).length;
    const made = { by: likenessOf(record), of: this.#make() };
    beside.push(made);
    this.#count++;
    return (this.#last = made).of;
  }

  #beside({ model, key }: RequestRecord): Shared<T>[] {
    if (this.#count >= MOST_ALIKE) {
      this.#all.clear();
      this.#count = 0;
    }
    let ofModel = this.#all.get(model);
    if (!ofModel) this.#all.set(model, (ofModel = new Map()));
    let beside = ofModel.get(key);
    if (!beside) ofModel.set(key, (beside = []));
    return beside;
  }
}

const mayBeLike = ({ calls, hooks, passedOver, losses, model }: RequestRecord): boolean =>
  calls.length < 2 && !hooks && !passedOver && losses === 0 && model.length <= LONGEST_MODEL;

function likenessOf(record: RequestRecord) {
  const { method, route, frontend, kind, op, model, alias, served, stream, lane, status } = record;
  const { outcome, fault, finish, cached, key, account, privacy, worker, generation } = record;
  const call = record.calls[0];
  return {
    method,
    route,
    frontend,
    kind,
    op,
    model,
    alias,
    served,
    stream,
    lane,
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
      lane: call.lane,
      state: call.state,
      isPriced: call.costNano !== null,
      faultKind: call.fault?.kind,
      faultCode: call.fault?.code,
    },
  };
}

function isLike(record: RequestRecord, by: Likeness): boolean {
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
    record.lane === by.lane &&
    record.kind === by.kind &&
    record.op === by.op &&
    record.alias === by.alias &&
    record.cached === by.cached &&
    record.account === by.account &&
    record.privacy === by.privacy &&
    record.worker === by.worker &&
    record.generation === by.generation &&
    record.fault?.kind === by.faultKind &&
    record.fault?.code === by.faultCode &&
    mayBeLike(record) &&
    isLikeCall(record.calls[0], by.call)
  );
}

function isLikeCall(call: RequestRecordCall | undefined, by: Likeness["call"]): boolean {
  if (!call || !by) return !call && !by;
  return (
    call.provider === by.provider &&
    call.model === by.model &&
    call.credential === by.credential &&
    call.n === by.n &&
    call.hedge === by.hedge &&
    call.lane === by.lane &&
    call.state === by.state &&
    (call.costNano !== null) === by.isPriced &&
    call.fault?.kind === by.faultKind &&
    call.fault?.code === by.faultCode
  );
}
