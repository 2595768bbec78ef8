// OTLP's messages, after opentelemetry-proto 1.x. Each row defines a field: its protobuf number and
// type. In memory, a message has the form of its JSON: names in lowerCamelCase, IDs in hex, 64-bit
// integers as decimal strings, and enums as numbers. JSON therefore needs no table, and protobuf
// needs only these rows.

/** A message as an object, with its fields by name. */
export type ProtobufMessage = { readonly [field: string]: unknown };

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
  readonly fieldNumber: number;
  readonly type: Scalar | MessageShape;
  readonly isRepeated?: true;
}
export interface MessageShape {
  readonly [name: string]: FieldShape;
}

const singleField = (n: number, type: FieldShape["type"]): FieldShape => ({ fieldNumber: n, type });
const repeatedField = (n: number, type: FieldShape["type"]): FieldShape => ({
  fieldNumber: n,
  type,
  isRepeated: true,
});

export const VALUE: { [name: string]: FieldShape } = {
  stringValue: singleField(1, "string"),
  boolValue: singleField(2, "bool"),
  intValue: singleField(3, "int64"),
  doubleValue: singleField(4, "double"),
};
VALUE["arrayValue"] = singleField(5, { values: repeatedField(1, VALUE) });

export const ATTRIBUTE: MessageShape = {
  key: singleField(1, "string"),
  value: singleField(2, VALUE),
};
const RESOURCE: MessageShape = { attributes: repeatedField(1, ATTRIBUTE) };
const SCOPE: MessageShape = { name: singleField(1, "string"), version: singleField(2, "string") };

/** The messages around the items, which have the same structure for all three signals. */
const envelopeShape = (
  items: string,
  group: string,
  top: string,
  shape: MessageShape,
): MessageShape => ({
  [top]: repeatedField(1, {
    resource: singleField(1, RESOURCE),
    [group]: repeatedField(2, {
      scope: singleField(1, SCOPE),
      [items]: repeatedField(2, shape),
      schemaUrl: singleField(3, "string"),
    }),
    schemaUrl: singleField(3, "string"),
  }),
});

const SPAN: MessageShape = {
  traceId: singleField(1, "hex"),
  spanId: singleField(2, "hex"),
  traceState: singleField(3, "string"),
  parentSpanId: singleField(4, "hex"),
  name: singleField(5, "string"),
  kind: singleField(6, "enum"),
  startTimeUnixNano: singleField(7, "fixed64"),
  endTimeUnixNano: singleField(8, "fixed64"),
  attributes: repeatedField(9, ATTRIBUTE),
  events: repeatedField(11, {
    timeUnixNano: singleField(1, "fixed64"),
    name: singleField(2, "string"),
    attributes: repeatedField(3, ATTRIBUTE),
  }),
  links: repeatedField(13, {
    traceId: singleField(1, "hex"),
    spanId: singleField(2, "hex"),
    traceState: singleField(3, "string"),
    attributes: repeatedField(4, ATTRIBUTE),
  }),
  status: singleField(15, { message: singleField(2, "string"), code: singleField(3, "enum") }),
  flags: singleField(16, "fixed32"),
};

const EXEMPLAR: MessageShape = {
  timeUnixNano: singleField(2, "fixed64"),
  asDouble: singleField(3, "double"),
  spanId: singleField(4, "hex"),
  traceId: singleField(5, "hex"),
};
const NUMBER: MessageShape = {
  startTimeUnixNano: singleField(2, "fixed64"),
  timeUnixNano: singleField(3, "fixed64"),
  asDouble: singleField(4, "double"),
  attributes: repeatedField(7, ATTRIBUTE),
};
const HISTOGRAM: MessageShape = {
  startTimeUnixNano: singleField(2, "fixed64"),
  timeUnixNano: singleField(3, "fixed64"),
  count: singleField(4, "fixed64"),
  sum: singleField(5, "double"),
  bucketCounts: repeatedField(6, "fixed64"),
  explicitBounds: repeatedField(7, "double"),
  exemplars: repeatedField(8, EXEMPLAR),
  attributes: repeatedField(9, ATTRIBUTE),
};
const METRIC: MessageShape = {
  name: singleField(1, "string"),
  description: singleField(2, "string"),
  unit: singleField(3, "string"),
  gauge: singleField(5, { dataPoints: repeatedField(1, NUMBER) }),
  sum: singleField(7, {
    dataPoints: repeatedField(1, NUMBER),
    aggregationTemporality: singleField(2, "enum"),
    isMonotonic: singleField(3, "bool"),
  }),
  histogram: singleField(9, {
    dataPoints: repeatedField(1, HISTOGRAM),
    aggregationTemporality: singleField(2, "enum"),
  }),
};

const LOG: MessageShape = {
  timeUnixNano: singleField(1, "fixed64"),
  severityNumber: singleField(2, "enum"),
  severityText: singleField(3, "string"),
  body: singleField(5, VALUE),
  attributes: repeatedField(6, ATTRIBUTE),
  flags: singleField(8, "fixed32"),
  traceId: singleField(9, "hex"),
  spanId: singleField(10, "hex"),
  observedTimeUnixNano: singleField(11, "fixed64"),
  eventName: singleField(12, "string"),
};

export type Signal = "traces" | "metrics" | "logs";

/** The request message of each signal, and the names of the fields that lead to its items. */
export const REQUEST_SHAPES = {
  traces: {
    shape: envelopeShape("spans", "scopeSpans", "resourceSpans", SPAN),
    names: ["resourceSpans", "scopeSpans", "spans"],
  },
  metrics: {
    shape: envelopeShape("metrics", "scopeMetrics", "resourceMetrics", METRIC),
    names: ["resourceMetrics", "scopeMetrics", "metrics"],
  },
  logs: {
    shape: envelopeShape("logRecords", "scopeLogs", "resourceLogs", LOG),
    names: ["resourceLogs", "scopeLogs", "logRecords"],
  },
} as const satisfies {
  readonly [S in Signal]: {
    readonly shape: MessageShape;
    readonly names: readonly [string, string, string];
  };
};
