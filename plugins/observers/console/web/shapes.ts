// What commands answer, as far as pages read it. Amounts are texts of whole nano-dollars.

export interface Times {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export interface StatsRow {
  readonly name: string;
  readonly keyName?: string;
  readonly requests: number;
  readonly failed: number;
  readonly refused: number;
  readonly canceled: number;
  readonly calls: number;
  readonly unpriced: number;
  readonly estimated: number;
  readonly input: number;
  readonly output: number;
  readonly costNano: string;
  readonly ms?: Times;
  readonly firstContentMs?: Times;
  /** The gateway's own. */
  readonly ownMs?: Times;
}

export interface Series {
  readonly since: number;
  readonly rows: readonly (StatsRow & { readonly at: number })[];
  /** Of the whole time, the largest first. */
  readonly totals: readonly StatsRow[];
}

export interface Resting {
  readonly provider: string;
  readonly credential: string;
  readonly model?: string;
  readonly why: string;
  readonly until: number;
  readonly state: string;
  readonly refuses?: boolean;
}

export interface Recent {
  readonly at: number;
  readonly since: number;
  readonly inFlight: number;
  readonly resting: readonly Resting[];
  readonly ledger: { readonly ok: boolean; readonly why?: string };
  readonly all?: StatsRow;
}

export interface Sum {
  readonly by: Readonly<Record<string, string>>;
  readonly calls: number;
  readonly usage: Readonly<Record<string, number>>;
  readonly costNano: string;
  readonly unpriced: number;
  readonly estimated: number;
}

export interface Sums {
  readonly rows: readonly Sum[];
  readonly total: Sum;
  readonly names: Readonly<Record<string, string>>;
}

export interface UsageSeries {
  readonly times: readonly number[];
  readonly series: readonly {
    readonly name: string;
    readonly calls: readonly number[];
    readonly costNano: readonly string[];
    readonly tokens: readonly number[];
  }[];
}

export interface Fault {
  readonly kind: string;
  readonly code?: string;
  readonly errno?: string;
}

export interface SeenCall {
  readonly n: number;
  /** Made while another call of the request had no content. */
  readonly hedge?: boolean;
  readonly startMs: number;
  readonly provider: string;
  readonly model: string;
  readonly credential: string;
  readonly protocol: string | null;
  readonly lane: string;
  readonly state: string;
  readonly usage: Readonly<Record<string, number>>;
  readonly costNano?: string | null;
  readonly fault?: Fault;
  readonly ms: { readonly head?: number; readonly content?: number; readonly total: number };
}

/** A request that is over; of one that was turned away at the door little is known. */
export interface Seen {
  readonly at: number;
  readonly id: string;
  readonly status: number;
  readonly code?: string;
  readonly method?: string;
  readonly clientRequestId?: string;
  readonly worker?: number;
  readonly generation?: number;
  readonly outcome?: string;
  readonly frontend?: string;
  readonly protocol?: string;
  readonly kind?: string;
  readonly name?: string;
  readonly route?: string;
  readonly model?: string;
  readonly alias?: string;
  readonly served?: string;
  readonly pinned?: boolean;
  readonly hooks?: readonly {
    readonly plugin: string;
    readonly hook: string;
    readonly did: string;
    readonly ms?: number;
  }[];
  readonly passedOver?: readonly {
    readonly candidate: string;
    readonly credential: string;
    readonly by: string;
    readonly code: string;
  }[];
  readonly stream?: boolean;
  readonly lane?: string | null;
  readonly fault?: Fault;
  readonly finish?: string;
  readonly cached?: boolean;
  readonly key?: string;
  readonly keyName?: string;
  readonly account?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly privacy?: string;
  readonly receipt?: string;
  readonly losses?: number;
  readonly lossCodes?: Readonly<Record<string, number>>;
  readonly bytesIn?: number;
  readonly bytesOut?: number;
  readonly ms?: number;
  readonly contentMs?: number;
  readonly trace?: { readonly traceId: string };
  readonly ownMs?: number;
  /** It is not over: what it is at, and which provider is asked. */
  readonly phase?: "arriving" | "waiting" | "asking" | "answering";
  readonly provider?: string;
  readonly calls?: readonly SeenCall[];
}

export interface Charge {
  readonly attempt: string;
  readonly n: number;
  readonly key: string;
  readonly keyName?: string;
  readonly target: {
    readonly provider: string;
    readonly model: string;
    readonly credential: string;
  };
  readonly reservedAt: number;
  readonly settledAt?: number;
  readonly state: string;
  readonly outcome: string;
  readonly usage: Readonly<Record<string, number>>;
  readonly holdNano?: string | null;
  readonly costNano: string | null;
  readonly price?: string | null;
  readonly lines?: readonly {
    readonly unit: string;
    readonly count: number;
    readonly nano: string;
  }[];
  readonly upstreamId?: string;
  readonly adjustments: readonly {
    readonly row: number;
    readonly at: number;
    readonly costNano: string | null;
    readonly reason?: string;
    readonly actor?: string;
  }[];
  readonly rows: readonly number[];
}

export interface FoundRequest {
  readonly id: string;
  readonly seen?: Seen;
  readonly charges: readonly Charge[];
}
