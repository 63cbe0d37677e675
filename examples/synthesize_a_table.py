"""Make a private synthetic table in Python: fit once, draw as often as you like."""

import kamino
from kamino.constraints import count_violations
from kamino.datasets import TAX_CONSTRAINTS, tax

private = tax(2_000)

# The domains of this made-up table are no secret. Of a real one, declare them: Synthesizer(Path("schema.yaml")).
synthesizer = kamino.Synthesizer(constraints=TAX_CONSTRAINTS, epsilon=1.0, delta=1e-6, trust_domain=True)
synthesizer.fit(private)
synthetic = synthesizer.sample(1_000)

certificate = synthesizer.certificate(synthetic)
print(synthetic.num_rows, "rows,", certificate["mark"])
for rule in kamino.Constraints.parse(TAX_CONSTRAINTS):
    print(count_violations(synthetic, rule), "violations")

some = synthesizer.sample(20, given={"marital_status": "M"})
print(set(some.column("marital_status").to_pylist()))
