// The parts of command responses that the pages use. Amounts are strings of whole nano-dollars.

export interface Percentiles {
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
  readonly ms?: Percentiles;
  readonly firstTokenMs?: Percentiles;
  /** Latency added by the gateway itself. */
  readonly overheadMs?: Percentiles;
}

export interface StatsSeries {
  readonly countedSince: number;
  readonly rows: readonly (StatsRow & { readonly at: number })[];
  /** Totals of the whole period, largest first. */
  readonly totals: readonly StatsRow[];
}

export interface Cooldown {
  readonly provider: string;
  readonly credential: string;
  readonly model?: string;
  readonly reason: string;
  readonly until: number;
  readonly state: string;
  readonly rejectsRequests?: boolean;
}

export interface RecentStats {
  readonly at: number;
  readonly countedSince: number;
  readonly inFlight: number;
  readonly cooldowns: readonly Cooldown[];
  readonly ledger: { readonly ok: boolean; readonly reason?: string };
  readonly total?: StatsRow;
}

export interface UsageRow {
  readonly by: Readonly<Record<string, string>>;
  readonly calls: number;
  readonly usage: Readonly<Record<string, number>>;
  readonly costNano: string;
  readonly unpriced: number;
  readonly estimated: number;
}

export interface UsageReport {
  readonly rows: readonly UsageRow[];
  readonly total: UsageRow;
  readonly keyNames: Readonly<Record<string, string>>;
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

export interface ObservedCall {
  readonly n: number;
  /** Whether the call was made while another call of the request had no content yet. */
  readonly hedge?: boolean;
  readonly startMs: number;
  readonly provider: string;
  readonly model: string;
  readonly credential: string;
  readonly protocol: string | null;
  readonly mode: string;
  readonly state: string;
  readonly usage: Readonly<Record<string, number>>;
  readonly costNano?: string | null;
  readonly fault?: Fault;
  readonly ms: { readonly headers?: number; readonly firstToken?: number; readonly total: number };
}

/** A completed request. If it was rejected before routing, few fields are set. */
export interface ObservedRequest {
  readonly at: number;
  readonly id: string;
  readonly status: number;
  readonly code?: string;
  readonly method?: string;
  readonly clientRequestId?: string;
  /** ID of the WebSocket that the request came through. */
  readonly session?: string;
  readonly worker?: number;
  readonly generation?: number;
  readonly outcome?: string;
  readonly frontend?: string;
  readonly protocol?: string;
  readonly operation?: string;
  readonly action?: string;
  readonly route?: string;
  readonly model?: string;
  readonly alias?: string;
  readonly served?: string;
  readonly isPinned?: boolean;
  readonly hooks?: readonly {
    readonly plugin: string;
    readonly hook: string;
    readonly effect: string;
    readonly ms?: number;
  }[];
  readonly skippedCandidates?: readonly {
    readonly candidate: string;
    readonly credential: string;
    readonly by: string;
    readonly code: string;
  }[];
  readonly stream?: boolean;
  readonly mode?: string | null;
  readonly fault?: Fault;
  readonly finish?: string;
  readonly cached?: boolean;
  readonly key?: string;
  readonly keyName?: string;
  readonly account?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly privacy?: string;
  readonly zdrReceipt?: string;
  readonly losses?: number;
  readonly lossCodes?: Readonly<Record<string, number>>;
  readonly bytesIn?: number;
  readonly bytesOut?: number;
  readonly ms?: number;
  readonly firstTokenMs?: number;
  readonly trace?: { readonly traceId: string };
  readonly overheadMs?: number;
  /** Phase of a request in flight. `provider` is then the provider being called. */
  readonly phase?: "receiving" | "waiting" | "calling" | "responding";
  readonly provider?: string;
  readonly calls?: readonly ObservedCall[];
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
  readonly priceLines?: readonly {
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
  readonly rowNumbers: readonly number[];
}

export interface FoundRequest {
  readonly id: string;
  readonly record?: ObservedRequest;
  readonly charges: readonly Charge[];
}
