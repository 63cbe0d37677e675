# Kamino in a container: docker build -t kamino . && docker run --rm -v "$PWD:/data" kamino synth taxes.csv -o out.csv
# No part of the tests builds this image; what it installs is the wheel that the tests install.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /wheels .

FROM python:3.12-slim
COPY --from=build /wheels /wheels
# EXTRAS chooses what is added: postgres, pandas, polars, ml, neural.
ARG EXTRAS=postgres
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[${EXTRAS}]" && useradd --create-home kamino
USER kamino
WORKDIR /data
ENTRYPOINT ["kamino"]
CMD ["--help"]
