// The package's own tests, as its author runs them.
await import("../../examples/packages/middleware-cost-routing/test/cost-routing.test.ts");
