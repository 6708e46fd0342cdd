mod lab;
