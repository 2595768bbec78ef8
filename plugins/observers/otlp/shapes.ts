// OTLP's messages, a row a field: its number in protobuf and its type, after opentelemetry-proto 1.x. A message in memory is what
// its JSON is: names in lowerCamelCase, ids in hex, 64-bit integers as decimal strings, enums as numbers. So JSON needs no table,
// and the rows are all that protobuf needs.

export type Scalar =
  | "string"
  | "hex"
  | "bool"
  | "enum"
  | "int64"
  | "fixed64"
  | "fixed32"
  | "double";

export interface FieldShape {
  readonly n: number;
  readonly type: Scalar | MessageShape;
  readonly many?: true;
}
export interface MessageShape {
  readonly [name: string]: FieldShape;
}

const one = (n: number, type: FieldShape["type"]): FieldShape => ({ n, type });
const many = (n: number, type: FieldShape["type"]): FieldShape => ({ n, type, many: true });

export const VALUE: { [name: string]: FieldShape } = {
  stringValue: one(1, "string"),
  boolValue: one(2, "bool"),
  intValue: one(3, "int64"),
  doubleValue: one(4, "double"),
};
VALUE["arrayValue"] = one(5, { values: many(1, VALUE) });

export const ATTRIBUTE: MessageShape = { key: one(1, "string"), value: one(2, VALUE) };
const RESOURCE: MessageShape = { attributes: many(1, ATTRIBUTE) };
const SCOPE: MessageShape = { name: one(1, "string"), version: one(2, "string") };

/** The frame that is the same for all three signals. */
const frame = (items: string, group: string, top: string, shape: MessageShape): MessageShape => ({
  [top]: many(1, {
    resource: one(1, RESOURCE),
    [group]: many(2, {
      scope: one(1, SCOPE),
      [items]: many(2, shape),
      schemaUrl: one(3, "string"),
    }),
    schemaUrl: one(3, "string"),
  }),
});

const SPAN: MessageShape = {
  traceId: one(1, "hex"),
  spanId: one(2, "hex"),
  traceState: one(3, "string"),
  parentSpanId: one(4, "hex"),
  name: one(5, "string"),
  kind: one(6, "enum"),
  startTimeUnixNano: one(7, "fixed64"),
  endTimeUnixNano: one(8, "fixed64"),
  attributes: many(9, ATTRIBUTE),
  events: many(11, {
    timeUnixNano: one(1, "fixed64"),
    name: one(2, "string"),
    attributes: many(3, ATTRIBUTE),
  }),
  status: one(15, { message: one(2, "string"), code: one(3, "enum") }),
  flags: one(16, "fixed32"),
};

const EXEMPLAR: MessageShape = {
  timeUnixNano: one(2, "fixed64"),
  asDouble: one(3, "double"),
  spanId: one(4, "hex"),
  traceId: one(5, "hex"),
};
const NUMBER: MessageShape = {
  startTimeUnixNano: one(2, "fixed64"),
  timeUnixNano: one(3, "fixed64"),
  asDouble: one(4, "double"),
  attributes: many(7, ATTRIBUTE),
};
const HISTOGRAM: MessageShape = {
  startTimeUnixNano: one(2, "fixed64"),
  timeUnixNano: one(3, "fixed64"),
  count: one(4, "fixed64"),
  sum: one(5, "double"),
  bucketCounts: many(6, "fixed64"),
  explicitBounds: many(7, "double"),
  exemplars: many(8, EXEMPLAR),
  attributes: many(9, ATTRIBUTE),
};
const METRIC: MessageShape = {
  name: one(1, "string"),
  description: one(2, "string"),
  unit: one(3, "string"),
  gauge: one(5, { dataPoints: many(1, NUMBER) }),
  sum: one(7, {
    dataPoints: many(1, NUMBER),
    aggregationTemporality: one(2, "enum"),
    isMonotonic: one(3, "bool"),
  }),
  histogram: one(9, { dataPoints: many(1, HISTOGRAM), aggregationTemporality: one(2, "enum") }),
};

const LOG: MessageShape = {
  timeUnixNano: one(1, "fixed64"),
  severityNumber: one(2, "enum"),
  severityText: one(3, "string"),
  body: one(5, VALUE),
  attributes: many(6, ATTRIBUTE),
  flags: one(8, "fixed32"),
  traceId: one(9, "hex"),
  spanId: one(10, "hex"),
  observedTimeUnixNano: one(11, "fixed64"),
  eventName: one(12, "string"),
};

export type Signal = "traces" | "metrics" | "logs";

/** What is posted for a signal, and where in it its items stand. */
export const REQUESTS = {
  traces: {
    shape: frame("spans", "scopeSpans", "resourceSpans", SPAN),
    names: ["resourceSpans", "scopeSpans", "spans"],
  },
  metrics: {
    shape: frame("metrics", "scopeMetrics", "resourceMetrics", METRIC),
    names: ["resourceMetrics", "scopeMetrics", "metrics"],
  },
  logs: {
    shape: frame("logRecords", "scopeLogs", "resourceLogs", LOG),
    names: ["resourceLogs", "scopeLogs", "logRecords"],
  },
} as const satisfies {
  readonly [S in Signal]: {
    readonly shape: MessageShape;
    readonly names: readonly [string, string, string];
  };
};
