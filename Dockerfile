# docker build -t nsysmap .
# docker run --rm -v "$PWD:/data" nsysmap analyze report.nsys-rep engine.json
FROM python:3.12-slim
COPY . /src
RUN pip install --no-cache-dir --constraint /src/requirements-dev.txt /src && rm -rf /src \
    && useradd --create-home nsysmap
USER nsysmap
WORKDIR /data
ENTRYPOINT ["nsysmap"]
